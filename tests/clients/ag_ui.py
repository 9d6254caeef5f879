"""AG-UI's validator: it finds nothing in any session. Usage: BASE TOKEN FOLDER TYPE..."""

import asyncio
import json
import sys
import urllib.request

from ag_ui_validate.transport import TransportOptions, validate_body

base, token, _, *types = sys.argv[1:]


def opened(path, body=None):
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(base + path, None if body is None else json.dumps(body).encode(), headers)
    return urllib.request.urlopen(request, timeout=60)


def answer(path, body=None):
    with opened(path, body) as response:
        assert response.headers["content-type"] == "text/event-stream"
        return response.read()


def validated(stream, what):
    check(pieces([stream]), what, TransportOptions(recorded=True))


async def pieces(stream):
    for piece in stream:
        yield piece


def check(body, what, options):
    """The rules for events and, with the validator's own decoder, those for the stream."""
    result = asyncio.run(validate_body(body, "text/event-stream", options))
    report = result.report
    found = [str(found) for found in report.diagnostics] + list(report.internal_errors)
    assert not found and result.transport_error is None, (what, found[:3], result.transport_error)
    assert 2 <= report.event_count, (what, report.event_count)


def spoken():
    """A run as it arrives: the rules for keep-alives, buffering and the end of the connection need the time."""
    script = json.dumps({"deltas": 20, "pace_us": 20_000})
    with opened("/ag-ui/fake", run("spoken", 1, script)) as response:
        check(pieces(iter(lambda: response.read1(65536), b"")), "spoken", TransportOptions())


def run(kind, number, words="go", **more):
    messages = [{"id": f"u{number}", "role": "user", "content": words}]
    run = {"threadId": kind, "runId": f"{kind}-{number}", "messages": messages, "tools": [], "context": []}
    return {**run, "protocolVersion": "1.0", **more}


def last(stream):
    return json.loads(stream.decode().rstrip().split("\n\n")[-1].removeprefix("data: "))


def answered():
    """A run that ends at a permission request, and the run of the answer."""
    asked = answer("/ag-ui/asking", run("asking", 1))
    validated(asked, "asked")
    [interrupt] = last(asked)["outcome"]["interrupts"]
    resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True}}]
    told = answer("/ag-ui/asking", run("asking", 2) | {"messages": [], "resume": resume})
    validated(told, "answered")
    assert last(told)["outcome"]["type"] == "success", last(told)
    validated(answer("/ag-ui/threads/asking"), "a thread with an answer")


def ended():
    """A run that is cancelled after five deltas, and one whose agent crashes."""
    stream = b""
    with opened("/ag-ui/fake", run("fake", 1, json.dumps({"mode": "hang", "deltas": 5}))) as response:
        while stream.count(b"TEXT_MESSAGE_CONTENT") < 5:
            stream += response.readline()
        with opened("/ag-ui/threads/fake/cancel", {}) as cancel:
            assert cancel.status == 202
        stream += response.read()
    validated(stream, "cancelled")
    assert last(stream).get("outcome") == {"type": "cancelled"}, last(stream)
    crashed = answer("/ag-ui/fake", run("fake", 2, json.dumps({"mode": "crash", "deltas": 3})))
    validated(crashed, "crashed")
    assert last(crashed)["type"] == "RUN_ERROR", last(crashed)
    validated(answer("/ag-ui/threads/fake"), "a thread with both")
    spoken()


stories = {"asking": answered, "fake": ended}
for kind in types:
    if kind in stories:
        stories[kind]()
        continue
    body = run(kind, 1)
    live = answer(f"/ag-ui/{kind}", body)
    validated(live, kind)
    assert answer(f"/ag-ui/{kind}", body) == live, f"{kind} is the same again"
    validated(answer(f"/ag-ui/threads/{kind}"), kind)
print(f"{len(types)} sessions")
