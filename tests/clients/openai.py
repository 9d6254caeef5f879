"""OpenAI's Python client, as an application would use it. Usage: BASE TOKEN FOLDER STORY"""

import json
import os
import sys
import time

import httpx2
from openai import APIConnectionError, APIError, AuthenticationError, BadRequestError, NotFoundError, OpenAI, Stream
from openai.types.chat import ChatCompletionChunk

base, token, folder, story = sys.argv[1:5]
url = f"{base}/openai/v1"
client = OpenAI(base_url=url, api_key=token, max_retries=0)
# Recordings of a real agent: with tools, with a sub-agent, with an answer that was begun again, and with emoji.
RECORDED = ["many_tools", "subagent_partial", "err_drop_once_slow", "thinking_partial"]


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


def left_early(create):
    """The first events of a stream whose reader leaves, and the gate at which the agent then waits."""
    gate = os.path.join(folder, "gate")
    first = []
    with create({"deltas": 30, "gate": gate, "gate_after": 15}, stream=True) as stream:
        for event in stream:
            first.append(event)
            if len(first) == 11:
                break
    return first, gate


def resume():
    first, gate = left_early(fake)
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
    for model in RECORDED:
        live = list(client.responses.create(model=model, input="go", stream=True))
        assert live[-1].type == "response.completed", model
        for event in live:
            number = event.sequence_number
            assert dumped(resumed(live[0].response.id, number)) == dumped(live[number + 1 :]), (model, number)


# What an agent says while its server is killed again and again. Each word shows its place.
WORDS = [f"{number} 🦀 " for number in range(400)]
FLOW = {"say": WORDS, "pace_us": 10_000}


def over_kills(stream, after, is_end):
    """Reads a stream to its end. The server is killed three times while it comes. `after` opens what follows."""
    seen, kills, cuts = [], 0, 0
    while not seen or not is_end(seen[-1]):
        try:
            for event in stream or after(seen):
                seen.append(event)
                if kills < 3 and 40 * (kills + 1) <= len(seen):
                    open(os.path.join(folder, f"reached-{kills}"), "w").close()
                    kills += 1
        except (APIConnectionError, httpx2.TransportError):
            # A server that is away, or a connection that breaks. Everything else is a failure.
            cuts += 1
            time.sleep(0.01)
        else:
            assert is_end(seen[-1]), "a stream that ends early does not look complete"
        stream = None
    assert kills == 3 and 0 < cuts, (kills, cuts)
    return seen


def restart():
    def after(seen):
        return client.responses.retrieve(seen[0].response.id, stream=True, starting_after=seen[-1].sequence_number)

    seen = over_kills(fake(FLOW, stream=True), after, lambda event: event.type == "response.completed")
    assert text(seen) == "".join(WORDS)
    assert dumped(seen) == dumped(list(client.responses.retrieve(seen[0].response.id, stream=True)))


def completions():
    headers = {"X-Conversation-Id": "talk"}
    create = client.chat.completions.create
    user = {"role": "user", "content": "go"}
    first = create(model="bash_fail", messages=[user], extra_headers=headers)
    message = first.choices[0].message
    assert (message.content, first.choices[0].finish_reason) == ("The command failed with exit code 3.", "stop")
    assert message.reasoning_content.startswith("Bash {") and message.tool_calls is None
    assert client.chat.completions.retrieve(first.id) == first
    history = [user, message.model_dump(exclude_none=True), user]
    options = {"include_usage": True}
    with client.chat.completions.stream(
        model="bash_fail", messages=history, stream_options=options, extra_headers=headers
    ) as stream:
        second = stream.get_final_completion()
    assert second.choices[0].message.content == message.content
    assert 0 < second.usage.total_tokens
    refused(BadRequestError, "completion_id", lambda: client.chat.completions.delete(first.id))
    client.chat.completions.delete(second.id)
    refused(NotFoundError, None, lambda: client.chat.completions.retrieve(first.id))

    seen = []
    try:
        for chunk in completion({"mode": "crash", "deltas": 3}, stream=True):
            seen.append(chunk)
    except APIError as failed:
        assert "exit" in failed.message
    else:
        raise AssertionError("a failed turn ended like a complete one")
    assert content(seen) == numbers(3)
    failed = completion({"mode": "crash", "deltas": 3})
    assert (failed.choices[0].message.content, failed.error["code"]) == (None, "server_error")
    assert "exit" in failed.choices[0].message.refusal
    refused(BadRequestError, "n", lambda: create(model="fake", messages=[user], n=2))


def completion(script, **options):
    messages = [{"role": "user", "content": json.dumps(script)}]
    return client.chat.completions.create(model="fake", messages=messages, **options)


def content(chunks):
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def cut(identity, after=None):
    return list(cut_stream(identity, after))


def cut_stream(identity, after=None):
    """The stream of a chat completion, after a chunk. OpenAI's client has no method for this."""
    query = {"stream": True} if after is None else {"stream": True, "starting_after": after}
    path = f"/chat/completions/{identity}"
    options = {"params": query}
    return client.get(path, cast_to=object, options=options, stream=True, stream_cls=Stream[ChatCompletionChunk])


def cut_completions():
    first, gate = left_early(completion)
    identity = first[0].id
    open(gate, "w").close()
    whole = cut(identity)
    assert dumped(first + cut(identity, 10)) == dumped(whole), "not one chunk more or less"
    assert content(whole) == numbers(30)
    for after in range(len(whole)):
        assert dumped(cut(identity, after)) == dumped(whole[after + 1 :])
    for model in RECORDED:
        messages = [{"role": "user", "content": "go"}]
        live = list(client.chat.completions.create(model=model, messages=messages, stream=True))
        assert live[-1].choices[0].finish_reason == "stop", model
        for after in range(len(live)):
            assert dumped(cut(live[0].id, after)) == dumped(live[after + 1 :]), (model, after)


def restart_completions():
    def is_end(chunk):
        return bool(chunk.choices) and chunk.choices[0].finish_reason == "stop"

    def after(seen):
        return cut_stream(seen[0].id, len(seen) - 1)

    seen = over_kills(completion(FLOW, stream=True), after, is_end)
    assert content(seen) == "".join(WORDS)
    assert dumped(seen) == dumped(cut(seen[0].id))


{
    "talk": talk,
    "error": error,
    "cancel": cancel,
    "resume": resume,
    "restart": restart,
    "completions": completions,
    "cut_completions": cut_completions,
    "restart_completions": restart_completions,
}[story]()
