"""AG-UI's validator: it finds nothing in any session. Usage: BASE TOKEN FOLDER TYPE..."""

import json
import sys
import urllib.request

from ag_ui_validate import create_validator

base, token, _, *types = sys.argv[1:]


def answer(path, body=None):
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(base + path, body and json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as response:
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


def run(kind, number, **more):
    messages = [{"id": "u", "role": "user", "content": "go"}]
    return {"threadId": kind, "runId": f"{kind}-{number}", "messages": messages, "tools": [], "context": [], **more}


for kind in types:
    body = run(kind, 1)
    live = answer(f"/ag-ui/{kind}", body)
    validated(live, kind)
    assert answer(f"/ag-ui/{kind}", body) == live, f"{kind} is the same again"
    validated(answer(f"/ag-ui/threads/{kind}"), kind)
print(f"{len(types)} sessions")
