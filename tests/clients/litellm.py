"""LiteLLM with OpenAI's format, as an application would use it. Usage: BASE TOKEN"""

import json
import os
import sys

# It would fetch a list of prices otherwise.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
import litellm
import openai

base, token = sys.argv[1:3]
ANSWER = "The command failed with exit code 3."
server = {"api_base": f"{base}/openai/v1", "api_key": token, "num_retries": 0}
user = {"role": "user", "content": "go"}


def complete(messages, **options):
    return litellm.completion(model="openai/bash_fail", messages=messages, **server, **options)


first = complete([{"role": "system", "content": "Be brief."}, user])
message = first.choices[0].message
assert (message.content, first.choices[0].finish_reason) == (ANSWER, "stop")
assert message.reasoning_content.startswith("Bash {")
assert 0 < first.usage.total_tokens
text = "".join(chunk.choices[0].delta.content or "" for chunk in complete([user], stream=True))
assert text == ANSWER
headers = {"X-Conversation-Id": "lite"}
for _ in range(2):
    assert complete([user], extra_headers=headers).choices[0].message.content == ANSWER
response = litellm.responses(model="openai/bash_fail", input="go", **server)
assert response.output[-1].content[0].text == ANSWER
events = list(litellm.responses(model="openai/bash_fail", input="go", stream=True, **server))
assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == ANSWER

crash = [{"role": "user", "content": json.dumps({"mode": "crash", "deltas": 3})}]
for stream in [False, True]:
    try:
        seen = litellm.completion(model="openai/fake", messages=crash, stream=stream, **server)
        list(seen)
    except openai.APIError as failed:
        # Of a whole completion, LiteLLM keeps that it has failed, but not the text.
        assert "exit" in str(failed) or not stream, failed
    else:
        raise AssertionError("a failed turn looked like a complete one")
