// OpenAI's library for agents, as an application would use it. Usage: BASE TOKEN, run in the folder of the client.
import assert from "node:assert/strict";
import { Agent, run, setDefaultOpenAIClient, setOpenAIAPI, setTracingDisabled } from "@openai/agents";
import OpenAI from "openai";

const [base, token] = process.argv.slice(2);
setTracingDisabled(true);
setDefaultOpenAIClient(new OpenAI({ baseURL: `${base}/openai/v1`, apiKey: token, maxRetries: 0 }));

const ANSWER = "The command failed with exit code 3.";
const agent = new Agent({ name: "Coder", instructions: "Be brief.", model: "bash_fail" });

for (const api of ["responses", "chat_completions"]) {
  setOpenAIAPI(api);
  const first = await run(agent, "go");
  assert.equal(first.finalOutput, ANSWER, api);
  const stream = await run(agent, "go", { stream: true });
  let text = "";
  for await (const event of stream) {
    if (event.type === "raw_model_stream_event" && event.data.type === "output_text_delta") text += event.data.delta;
  }
  await stream.completed;
  assert.deepEqual([text, stream.finalOutput], [ANSWER, ANSWER], api);
  // The whole conversation again, and one more message.
  const next = await run(agent, [...first.history, { role: "user", content: "go" }]);
  assert.equal(next.finalOutput, ANSWER, api);
}

// The server keeps the conversation.
setOpenAIAPI("responses");
const first = await run(agent, "go");
const second = await run(agent, "go", { previousResponseId: first.lastResponseId });
assert.equal(second.finalOutput, ANSWER);
assert.notEqual(second.lastResponseId, first.lastResponseId);

// A turn that failed is told, and not run again.
const agents = async () => (await (await fetch(`${base}/api/agents`, { headers: { Authorization: `Bearer ${token}` } })).json()).length;
const failing = new Agent({ name: "Failing", model: "fake" });
for (const api of ["responses", "chat_completions"]) {
  setOpenAIAPI(api);
  const before = await agents();
  await assert.rejects(run(failing, JSON.stringify({ mode: "crash", deltas: 3 })), (error) => !/turns/.test(error.message));
  assert.equal(await agents(), before + 1, api);
}
process.exit(0);
