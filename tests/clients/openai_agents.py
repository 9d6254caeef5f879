"""OpenAI's library for agents in Python, as an application would use it. Usage: BASE TOKEN"""

import asyncio
import json
import sys
import urllib.request

from agents import (
    Agent,
    MaxTurnsExceeded,
    Runner,
    set_default_openai_api,
    set_default_openai_client,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

base, token = sys.argv[1:3]
ANSWER = "The command failed with exit code 3."


async def main():
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=f"{base}/openai/v1", api_key=token, max_retries=0)
    set_default_openai_client(client, use_for_tracing=False)
    for api in ["responses", "chat_completions"]:
        set_default_openai_api(api)
        agent = Agent(name="Coder", instructions="Be brief.", model="bash_fail")
        first = await Runner.run(agent, "go")
        assert first.final_output == ANSWER, api
        stream = Runner.run_streamed(agent, "go")
        text = ""
        async for event in stream.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                text += event.data.delta
        assert text == stream.final_output == ANSWER, api
        # The whole conversation again, and one more message.
        history = first.to_input_list() + [{"role": "user", "content": "go"}]
        again = await Runner.run(agent, history)
        assert again.final_output == ANSWER, api

    # The server keeps the conversation.
    set_default_openai_api("responses")
    agent = Agent(name="Coder", instructions="Be brief.", model="bash_fail")
    first = await Runner.run(agent, "go")
    second = await Runner.run(agent, "go", previous_response_id=first.last_response_id)
    assert second.final_output == ANSWER
    assert second.last_response_id != first.last_response_id
    # A turn that failed is told, and not run again.
    for api in ["responses", "chat_completions"]:
        set_default_openai_api(api)
        failing = Agent(name="Failing", model="fake")
        before = agents()
        try:
            await Runner.run(failing, json.dumps({"mode": "crash", "deltas": 3}))
        except MaxTurnsExceeded:
            raise
        except Exception:
            assert agents() == before + 1, api
        else:
            raise AssertionError("a failed turn looked like a complete one")


def agents():
    request = urllib.request.Request(f"{base}/api/agents", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request) as answer:
        return len(json.load(answer))


asyncio.run(main())
