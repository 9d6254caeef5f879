// CopilotKit's runtime between its client and the server. Usage: BASE TOKEN FOLDER STORY, run in the folder of the client.
import assert from "node:assert/strict";
import { HttpAgent, buildResumeArray } from "@ag-ui/client";

process.env.COPILOTKIT_TELEMETRY_DISABLED = "true";
const { CopilotRuntime, createCopilotRuntimeHandler } = await import("@copilotkit/runtime/v2");

const [base, token, , story] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${token}` };

// A client of a runtime whose only agent is of this type.
function made(type, thread = type) {
  const remote = new HttpAgent({ url: `${base}/ag-ui/${type}`, headers });
  const handler = createCopilotRuntimeHandler({ runtime: new CopilotRuntime({ agents: { default: remote } }), basePath: "/copilot" });
  const fetch = (url, init) => handler(new Request(url, init));
  const agent = new HttpAgent({ url: "http://runtime/copilot/agent/default/run", threadId: `copilot-${thread}`, fetch });
  agent.seen = [];
  agent.subscribe({ onEvent: ({ event }) => void agent.seen.push(event) });
  return agent;
}
const say = (agent, content) => {
  agent.addMessage({ id: crypto.randomUUID(), role: "user", content });
  return agent.runAgent();
};

const stories = {
  async talk() {
    const agent = made("bash_fail");
    await say(agent, "go");
    const words = ["The command failed with exit code 3."];
    const spoken = () => agent.messages.filter(({ role, content }) => role === "assistant" && content).map(({ content }) => content);
    assert.deepEqual(spoken(), words);
    await say(agent, "go");
    assert.deepEqual(spoken(), [...words, ...words]);
    assert.equal(agent.messages.filter(({ role }) => role === "tool").length, 2);
  },

  async question() {
    for (const [answer, words] of [
      [{ status: "resolved", payload: { approved: true } }, "It was allowed."],
      [{ status: "resolved", payload: { optionId: "allow_always" } }, "It was always allowed."],
      [{ status: "cancelled" }, "It was refused."],
    ]) {
      const agent = made("asking", words);
      await say(agent, "Clean up");
      const [interrupt] = agent.pendingInterrupts;
      const call = agent.messages.at(-1).toolCalls[0];
      assert.deepEqual([interrupt.reason, interrupt.toolCallId, call.function.name], ["tool_call", call.id, "Bash"]);
      assert.deepEqual(JSON.parse(call.function.arguments), { command: "rm -r build" });
      await agent.runAgent({ resume: buildResumeArray([interrupt], { [interrupt.id]: answer }) });
      assert.deepEqual([agent.messages.at(-1).content, agent.pendingInterrupts], [words, []]);
    }
  },

  async cancel() {
    const agent = made("fake");
    const cancel = () => fetch(`${base}/ag-ui/threads/${agent.threadId}/cancel`, { method: "POST", headers });
    let cancelled;
    const is = (type) => agent.seen.some((event) => event.type === type);
    agent.subscribe({ onEvent: () => void (is("TEXT_MESSAGE_CONTENT") && (cancelled ??= cancel())) });
    await say(agent, JSON.stringify({ mode: "hang", deltas: 5 }));
    assert.equal((await cancelled).status, 202);
    assert.equal(agent.seen.at(-1).type, "RUN_FINISHED");
  },
};

await stories[story]();
process.exit(0);
