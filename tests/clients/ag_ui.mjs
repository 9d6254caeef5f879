// AG-UI's client, as an application would use it. Usage: BASE TOKEN FOLDER STORY, run in the folder of the client.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { HttpAgent, buildResumeArray, runHttpRequest, transformHttpEventStream } from "@ag-ui/client";

const [base, token, folder, story] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${token}` };
const numbers = (count) => Array.from({ length: count }, (_, number) => `${number} `).join("");
const file = (name) => join(folder, name);
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const warnings = [];
console.warn = (...words) => warnings.push(words.join(" "));

// An agent that can also join its thread.
class ThreadAgent extends HttpAgent {
  connect({ threadId }) {
    const url = `${base}/ag-ui/threads/${threadId}`;
    return transformHttpEventStream(runHttpRequest(() => this.fetch(url, { headers })));
  }
}

const ended = ({ type }) => type === "RUN_FINISHED" || type === "RUN_ERROR";
const cursor = (event) => event.metadata.tokenrail.cursor;

// Sends a request again after the last event, if its stream broke off. `cut` says whether to break it off here.
let cuts = 0;
const resuming = (cut = () => false) => async (url, init) => {
  let last;
  async function* blocks() {
    while (!last || !ended(last)) {
      try {
        const response = await fetch(last ? `${url}?after=${cursor(last)}` : url, init);
        assert.equal(response.status, 200);
        let buffer = "";
        for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
          const parts = (buffer + text).split("\n\n");
          buffer = parts.pop();
          for (const part of parts.filter((part) => part.startsWith("data: "))) {
            last = JSON.parse(part.slice(6));
            yield new TextEncoder().encode(`${part}\n\n`);
            if (cut(last)) throw new TypeError("cut");
          }
        }
        assert.ok(last && ended(last), "a stream that ends early does not look complete");
      } catch (error) {
        if (!(error instanceof TypeError)) throw error;
        cuts += 1;
        await sleep(10);
      }
    }
  }
  return new Response(ReadableStream.from(blocks()), { headers: { "content-type": "text/event-stream" } });
};

function made(type, options = {}) {
  const agent = new ThreadAgent({ url: `${base}/ag-ui/${type}`, headers, threadId: `thread-${crypto.randomUUID()}`, ...options });
  agent.seen = [];
  agent.subscribe({ onEvent: ({ event }) => void agent.seen.push(event) });
  return agent;
}
const say = (agent, words, options = {}) => {
  agent.addMessage({ id: crypto.randomUUID(), role: "user", content: typeof words === "string" ? words : JSON.stringify(words) });
  return agent.runAgent(options);
};
const text = (agent) => agent.seen.filter(({ type }) => type === "TEXT_MESSAGE_CONTENT").map(({ delta }) => delta).join("");
const last = (agent) => agent.seen.at(-1);
const shown = (agent) => agent.messages.map(({ role, content, toolCalls }) => ({ role, content, calls: toolCalls?.map((call) => call.function) }));

async function raw(url, init) {
  const response = await fetch(url, { headers, ...init });
  assert.equal(response.status, 200);
  const blocks = (await response.text()).split("\n\n").filter((block) => block.startsWith("data: "));
  return blocks.map((block) => JSON.parse(block.slice(6)));
}

const stories = {
  async talk() {
    const agent = made("bash_fail");
    await say(agent, "go");
    assert.deepEqual([agent.seen[0].type, last(agent).type, last(agent).outcome.type], ["RUN_STARTED", "RUN_FINISHED", "success"]);
    assert.deepEqual(agent.messages.map(({ role }) => role), ["user", "assistant", "tool", "assistant"]);
    const [, { toolCalls }, result, answer] = agent.messages;
    assert.equal(JSON.parse(toolCalls[0].function.arguments).description, "Fail on purpose");
    assert.deepEqual([result.toolCallId, result.content], [toolCalls[0].id, "Exit code 3\noops\npartial"]);
    assert.equal(answer.content, "The command failed with exit code 3.");
    assert.ok(0 < last(agent).usage[0].totalTokens);
    await say(agent, "go");
    assert.equal(agent.messages.length, 8);

    const other = made("bash_fail", { threadId: agent.threadId });
    await other.connectAgent();
    assert.deepEqual(shown(other), shown(agent), "who joins sees the same");

    const thought = made("thinking_partial");
    await say(thought, "go");
    assert.ok(thought.messages.find(({ role }) => role === "reasoning").content);
  },

  async error() {
    const agent = made("fake");
    await say(agent, { mode: "crash", deltas: 3 }).catch(() => {});
    assert.equal(text(agent), numbers(3), "what came before it was seen");
    assert.equal(last(agent).type, "RUN_ERROR");
    assert.match(last(agent).message, /exit/);
    const refused = (type, status, options) => assert.rejects(say(made(type, options), "x"), (error) => error.status === status);
    console.error = () => {};
    await refused("none", 422);
    await refused("fake", 401, { headers: { Authorization: "Bearer wrong" } });
  },

  async cancel() {
    const agent = made("fake");
    const cancel = () => fetch(`${base}/ag-ui/threads/${agent.threadId}/cancel`, { method: "POST", headers });
    let cancelled;
    agent.subscribe({ onEvent: () => void (text(agent) === numbers(5) && (cancelled ??= cancel())) });
    await say(agent, { mode: "hang", deltas: 5 });
    assert.equal((await cancelled).status, 202);
    assert.deepEqual([last(agent).type, last(agent).outcome.type], ["RUN_FINISHED", "cancelled"]);
    assert.equal(agent.messages.at(-1).content, numbers(5));
  },

  async question() {
    for (const [answer, words] of [
      [{ status: "resolved", payload: { approved: true } }, "It was allowed."],
      [{ status: "resolved", payload: { optionId: "allow_always" } }, "It was always allowed."],
      [{ status: "resolved", payload: false }, "It was refused."],
      [{ status: "cancelled" }, "It was refused."],
    ]) {
      const agent = made("asking");
      await say(agent, "Clean up");
      const [interrupt] = agent.pendingInterrupts;
      const call = agent.messages.at(-1).toolCalls[0];
      assert.deepEqual([interrupt.reason, interrupt.toolCallId, call.function.name], ["tool_call", call.id, "Bash"]);
      assert.deepEqual(JSON.parse(call.function.arguments), { command: "rm -r build" });
      const joined = made("asking", { threadId: agent.threadId });
      await joined.connectAgent();
      assert.deepEqual(joined.pendingInterrupts.map(({ id }) => id), [interrupt.id], "who joins is asked too");
      const resume = buildResumeArray(agent.pendingInterrupts, { [interrupt.id]: answer });
      await agent.runAgent({ runId: "second", resume });
      assert.deepEqual([agent.messages.at(-1).content, agent.pendingInterrupts], [words, []]);
      const again = made("asking", { threadId: agent.threadId });
      again.pendingInterrupts = [interrupt];
      await again.runAgent({ runId: "second", resume });
      assert.equal(text(again), words, "the first answer counts, and the run is the same");
    }
  },

  async resume() {
    // Recordings of a real agent: with tools, with a sub-agent, with an answer that was begun again, and with emoji.
    for (const type of ["many_tools", "subagent_partial", "err_drop_once_slow", "thinking_partial"]) {
      const messages = [{ id: "u", role: "user", content: "go" }];
      const input = { threadId: type, runId: "r", tools: [], context: [], messages };
      const init = { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(input) };
      const whole = await raw(`${base}/ag-ui/${type}`, init);
      assert.ok(10 < whole.length && ended(whole.at(-1)), type);
      const thread = `${base}/ag-ui/threads/${type}`;
      const all = await raw(thread);
      assert.equal(all.length, whole.length);
      for (const [at, event] of whole.entries()) {
        const after = `?after=${cursor(event)}`;
        assert.deepEqual(await raw(`${base}/ag-ui/${type}${after}`, init), whole.slice(at + 1), `${type}: exactly the rest`);
        assert.deepEqual(await raw(thread + after), all.slice(at + 1));
      }
    }
    // A connection that breaks after every event.
    const gate = file("gate");
    const agent = made("fake", { fetch: resuming(() => true) });
    agent.subscribe({ onEvent: () => void (text(agent) === numbers(15) && writeFileSync(gate, "")) });
    await say(agent, { deltas: 30, gate, gate_after: 15 });
    assert.equal(agent.messages.at(-1).content, numbers(30));
  },

  // The server is killed three times while the agent speaks.
  async restart() {
    const words = Array.from({ length: 400 }, (_, number) => `${number} 🦀 `);
    const agent = made("fake", { fetch: resuming() });
    let kills = 0;
    agent.subscribe({
      onEvent: () => {
        if (kills === 3 || agent.seen.length < 40 * (kills + 1)) return;
        writeFileSync(file(`reached-${kills}`), "");
        kills += 1;
      },
    });
    await say(agent, { say: words, pace_us: 10_000 });
    assert.equal(text(agent), words.join(""));
    assert.equal(agent.messages.at(-1).content, words.join(""));
    assert.ok(0 < cuts, "it was cut");
    const other = made("fake", { threadId: agent.threadId });
    await other.connectAgent();
    assert.deepEqual(shown(other), shown(agent));
  },
};

await stories[story]();
assert.deepEqual(warnings, [], "the client strips nothing");
process.exit(0);
