"""Letta's Python client, as an application would use it. Usage: BASE TOKEN FOLDER STORY"""

import json
import os
import sys
import time

from letta_client import APIError, APITimeoutError, ConflictError, Letta, NotFoundError, UnprocessableEntityError

base, token, folder, story = sys.argv[1:5]
client = Letta(base_url=base, api_key=token, max_retries=0)


def numbers(count):
    return "".join(f"{number} " for number in range(count))


def made(model):
    return client.agents.create(name=f"{story} {model}", model=model)


def begin(agent, script, **options):
    prompt = script if isinstance(script, str) else json.dumps(script)
    options = {"stream_tokens": True, **options}
    return client.agents.messages.create(agent.id, input=prompt, streaming=True, **options)


def of(messages, kind):
    return [message for message in messages if message.message_type == kind]


def text(messages):
    return "".join(message.content for message in of(messages, "assistant_message"))


def dumped(messages):
    return [message.model_dump() for message in messages]


def ends(messages, reason):
    assert [message.message_type for message in messages[-2:]] == ["stop_reason", "usage_statistics"]
    assert messages[-2].stop_reason == reason, messages[-2]


def talk():
    agent = made("bash_fail")
    pieces = list(begin(agent, "go"))
    whole = list(begin(agent, "go", stream_tokens=False))
    for messages in (pieces, whole):
        ends(messages, "end_turn")
        assert text(messages) == "The command failed with exit code 3."
        arguments = "".join(call.tool_call.arguments or "" for call in of(messages, "tool_call_message"))
        assert json.loads(arguments)["description"] == "Fail on purpose"
        (result,) = of(messages, "tool_return_message")
        assert (result.status, result.tool_return) == ("error", "Exit code 3\noops\npartial")
    answer = client.agents.messages.create(agent.id, messages=[{"role": "user", "content": "go"}])
    assert answer.stop_reason.stop_reason == "end_turn"
    assert text(answer.messages) == text(whole)

    thought = list(begin(made("thinking_partial"), "go"))
    assert "".join(message.reasoning for message in of(thought, "reasoning_message"))

    history = list(client.agents.messages.list(agent.id, limit=2, order="asc"))
    assert len(history) == 12 and len(of(history, "user_message")) == 3
    conversation = client.conversations.create(agent_id=agent.id)
    said = list(client.conversations.messages.create(conversation.id, input="go"))
    assert text(said) == text(whole)
    assert [model.handle for model in client.models.list()].count("fake") == 1
    client.agents.delete(agent.id)
    try:
        client.agents.retrieve(agent.id)
        raise AssertionError("it is still there")
    except NotFoundError:
        pass


def error():
    agent = made("fake")
    seen = []
    try:
        for message in begin(agent, {"mode": "crash", "deltas": 3}):
            seen.append(message)
        raise AssertionError("no error was seen")
    except APIError as failed:
        assert "exit" in str(failed), failed
    assert text(seen) == numbers(3)
    assert seen[-1].stop_reason == "error"


def retry():
    """A client that loses patience says what it has said again: to the agent that is one message."""
    agent = made("fake")
    gate = os.path.join(folder, "gate")
    script = json.dumps({"deltas": 6, "gate": gate, "gate_after": 3})
    impatient = Letta(base_url=base, api_key=token, timeout=0.5, max_retries=2)
    try:
        impatient.agents.messages.create(agent.id, input=script)
        raise AssertionError("the gate is closed")
    except APITimeoutError:
        pass
    open(gate, "w").close()
    again = {"x-stainless-retry-count": "3"}
    answer = client.agents.messages.create(agent.id, input=script, extra_headers=again)
    assert text(answer.messages) == numbers(6)
    assert len(list(client.runs.list(agent_id=agent.id, limit=1))) == 1, "said once"


def question():
    for option, words in (("allow", "It was allowed."), ("reject", "It was refused.")):
        agent = made("asking")
        seen = []
        for message in begin(agent, "Clean up"):
            seen.append(message)
            if message.message_type == "approval_request_message":
                path = f"/api/agents/{agent.id.removeprefix('agent-')}/permissions/{message.request_id}"
                client.post(path, body={"optionId": option}, cast_to=object)
        ends(seen, "end_turn")
        assert text(seen) == words
        (answered,) = of(seen, "approval_response_message")
        assert answered.approve == (option == "allow")
        assert answered.approvals[0].tool_call_id == "t"
    for approve, words in ((True, "It was allowed."), (False, "It was refused.")):
        in_lettas_own_words(approve, words)


def in_lettas_own_words(approve, words):
    """The answer to an approval is the rest of the run."""

    def decide(tool_call_id, **options):
        approval = {"type": "approval", "tool_call_id": tool_call_id, "approve": approve}
        messages = [{"type": "approval", "approvals": [approval]}]
        return client.agents.messages.create(agent.id, messages=messages, **options)

    agent = made("asking")
    seen, rest = [], None
    for message in begin(agent, "Clean up"):
        seen.append(message)
        if message.message_type == "approval_request_message":
            rest = decide(message.tool_call.tool_call_id, streaming=True, stream_tokens=True)
    rest = list(rest)
    ends(rest, "end_turn")
    assert text(seen) == words
    assert dumped(rest) == dumped(seen[-len(rest) :]), "what comes after the question, and nothing else"
    assert rest[0].message_type == "approval_response_message"
    for call, refused in (("t", ConflictError), ("no such call", UnprocessableEntityError)):
        try:
            decide(call)
            raise AssertionError("it was decided already" if call == "t" else "there is no such call")
        except refused:
            pass


def cancel():
    agent = made("fake")
    seen, asked = [], None
    for message in begin(agent, {"mode": "hang", "deltas": 5}):
        seen.append(message)
        if asked is None and text(seen) == numbers(5):
            asked = client.agents.messages.cancel(agent.id)
    assert list(asked.values()) == ["cancelled"], asked
    ends(seen, "cancelled")
    assert client.runs.retrieve(seen[0].run_id).status == "cancelled"


def resume():
    agent = made("fake")
    gate = os.path.join(folder, "gate")
    first = []
    with begin(agent, {"deltas": 30, "gate": gate, "gate_after": 15}, background=True) as stream:
        for message in stream:
            first.append(message)
            if len(first) == 7:
                break
    run = first[-1].run_id
    assert client.runs.retrieve(run).status == "running"
    with client.runs.messages.stream(run, starting_after=first[-1].seq_id) as rest:
        open(gate, "w").close()
        rest = list(rest)
    whole = list(client.runs.messages.stream(run, starting_after=0))
    assert dumped(first + rest) == dumped(whole)
    assert text(whole) == numbers(30)
    ends(whole, "end_turn")


def restart():
    agent = made("fake")
    gate = os.path.join(folder, "restarted")
    seen = []
    try:
        for message in begin(agent, {"deltas": 20, "gate": gate, "gate_after": 10}):
            seen.append(message)
            if text(seen) == numbers(10):
                open(os.path.join(folder, "reached"), "w").close()
    except Exception as broken:
        assert text(seen) == numbers(10), broken
    while not os.path.exists(gate):
        time.sleep(0.005)
    rest = list(client.runs.messages.stream(seen[-1].run_id, starting_after=seen[-1].seq_id))
    assert text(seen + rest) == numbers(20)
    ends(rest, "end_turn")


stories = {"talk": talk, "question": question, "error": error, "retry": retry, "cancel": cancel, "resume": resume, "restart": restart}
stories[story]()
