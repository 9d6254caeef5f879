"""OpenAI's Python client, as an application would use it. Usage: BASE TOKEN FOLDER STORY"""

import json
import os
import sys
import time

from openai import AuthenticationError, BadRequestError, NotFoundError, OpenAI

base, token, folder, story = sys.argv[1:5]
url = f"{base}/openai/v1"
client = OpenAI(base_url=url, api_key=token, max_retries=0)


def numbers(count):
    return "".join(f"{number} " for number in range(count))


def fake(script, **options):
    return client.responses.create(model="fake", input=json.dumps(script), **options)


def text(events):
    return "".join(event.delta for event in events if event.type == "response.output_text.delta")


def dumped(events):
    return [event.model_dump() for event in events]


def resumed(response, after):
    return list(client.responses.retrieve(response, stream=True, starting_after=after))


def talk():
    first = client.responses.create(model="bash_fail", input="go", metadata={"n": "1"})
    assert first.status == "completed" and first.metadata == {"n": "1"}
    assert first.output_text == "The command failed with exit code 3."
    (call,) = [item for item in first.output if item.type == "mcp_call"]
    assert (call.server_label, call.name, call.status) == ("bash_fail", "Bash", "failed")
    assert json.loads(call.arguments)["description"] == "Fail on purpose"
    with client.responses.stream(model="bash_fail", input="go", previous_response_id=first.id) as stream:
        events = list(stream)
        second = stream.get_final_response()
    assert second.output_text == first.output_text == text(events)
    assert second.previous_response_id == first.id
    history = [item.model_dump(exclude_none=True) for item in first.output + second.output]
    third = client.responses.create(model="bash_fail", input=history + [{"role": "user", "content": "go"}])
    assert third.previous_response_id == second.id, "its items say which conversation it is"
    (asked,) = client.responses.input_items.list(third.id)
    assert asked.content[0].text == "go"
    thought = client.responses.create(model="thinking_partial", input="go")
    assert [item for item in thought.output if item.type == "reasoning"][0].summary[0].text
    assert [model.id for model in client.models.list()][0] == "fake"
    client.responses.delete(third.id)
    refused(NotFoundError, None, lambda: client.responses.retrieve(first.id))


def refused(kind, param, call):
    try:
        call()
    except kind as error:
        assert error.param == param, error
        return error
    raise AssertionError("it was not refused")


def error():
    seen = list(fake({"mode": "crash", "deltas": 3}, stream=True))
    assert text(seen) == numbers(3)
    assert (seen[-1].type, seen[-1].response.status) == ("response.failed", "failed")
    assert "exit" in seen[-1].response.error.message
    create = client.responses.create
    tool = {"type": "function", "name": "x", "parameters": {}, "strict": False}
    refused(BadRequestError, "tools", lambda: create(model="fake", input="x", tools=[tool]))
    refused(BadRequestError, "model", lambda: create(model="none", input="x"))
    refused(NotFoundError, None, lambda: client.responses.retrieve("resp_1"))
    stranger = OpenAI(base_url=url, api_key="wrong", max_retries=0)
    wrong = refused(AuthenticationError, None, stranger.models.list)
    assert wrong.code == "invalid_api_key"


def cancel():
    response = fake({"mode": "hang", "deltas": 5}, background=True)
    seen = []
    for event in client.responses.retrieve(response.id, stream=True):
        seen.append(event)
        if event.type == "response.output_text.delta" and text(seen) == numbers(5):
            assert client.responses.cancel(response.id).status == "cancelled"
    assert (seen[-1].type, seen[-1].response.status) == ("response.incomplete", "cancelled")


def resume():
    gate = os.path.join(folder, "gate")
    first = []
    with fake({"deltas": 30, "gate": gate, "gate_after": 15}, stream=True) as stream:
        for event in stream:
            first.append(event)
            if len(first) == 11:
                break
    response = first[0].response.id
    assert client.responses.retrieve(response).status == "in_progress", "nobody listens, and it runs on"
    open(gate, "w").close()
    rest = resumed(response, first[-1].sequence_number)
    whole = list(client.responses.retrieve(response, stream=True))
    assert dumped(first + rest) == dumped(whole), "not one event more or less"
    assert text(whole) == numbers(30)
    for event in whole:
        number = event.sequence_number
        assert dumped(resumed(response, number)) == dumped(whole[number + 1 :])


def restart():
    gate = os.path.join(folder, "restarted")
    seen = []
    try:
        for event in fake({"deltas": 20, "gate": gate, "gate_after": 10}, stream=True):
            seen.append(event)
            if text(seen) == numbers(10):
                open(os.path.join(folder, "reached"), "w").close()
    except Exception:
        assert text(seen) == numbers(10)
    while not os.path.exists(gate):
        time.sleep(0.005)
    rest = resumed(seen[0].response.id, seen[-1].sequence_number)
    assert text(seen + rest) == numbers(20)
    assert rest[-1].type == "response.completed"


{"talk": talk, "error": error, "cancel": cancel, "resume": resume, "restart": restart}[story]()
