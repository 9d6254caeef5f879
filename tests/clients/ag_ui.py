"""AG-UI's validator: it finds nothing in any session. Usage: BASE TOKEN FOLDER TYPE..."""

import json
import sys
import urllib.request

from ag_ui_validate import create_validator

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
    validator = create_validator()
    for block in stream.decode().split("\n\n"):
        if block.startswith("data: "):
            validator.feed(block.removeprefix("data: "))
    validator.finalize()
    report = validator.report()
    found = [str(found) for found in report.diagnostics] + list(report.internal_errors)
    assert not found and 2 <= report.event_count, (what, found[:3], report.event_count)


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
