// Letta's client, as an application would use it. Usage: BASE TOKEN FOLDER STORY, run in the folder of the client.
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Letta, { APIError, NotFoundError } from "@letta-ai/letta-client";

const [base, token, folder, story] = process.argv.slice(2);
const client = new Letta({ baseURL: base, apiKey: token, maxRetries: 0 });
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const numbers = (count) => Array.from({ length: count }, (_, number) => `${number} `).join("");
const file = (name) => join(folder, name);

const made = (model) => client.agents.create({ name: `${story} ${model}`, model });
const begin = (agent, script, options = {}) =>
  client.agents.messages.create(agent.id, {
    input: typeof script === "string" ? script : JSON.stringify(script),
    streaming: true,
    stream_tokens: true,
    ...options,
  });

async function all(stream) {
  const seen = [];
  for await (const message of stream) seen.push(message);
  return seen;
}
const of = (messages, type) => messages.filter((message) => message.message_type === type);
const text = (messages) => of(messages, "assistant_message").map((message) => message.content).join("");
const reasoning = (messages) => of(messages, "reasoning_message").map((message) => message.reasoning).join("");
const calls = (messages) => {
  const calls = {};
  for (const { tool_call: call } of of(messages, "tool_call_message")) {
    const known = (calls[call.tool_call_id] ??= { name: "", input: "" });
    known.name += call.name ?? "";
    known.input += call.arguments ?? "";
  }
  return Object.values(calls).map(({ name, input }) => ({ name, input: JSON.parse(input) }));
};
const types = (messages) => messages.map((message) => message.message_type);
function assertEnds(messages, reason) {
  assert.deepEqual(types(messages).slice(-2), ["stop_reason", "usage_statistics"]);
  assert.equal(messages.at(-2).stop_reason, reason);
  const sequences = messages.map((message) => message.seq_id).filter((sequence) => sequence !== undefined);
  assert.ok(sequences.every((sequence, at) => at === 0 || sequences[at - 1] < sequence), "numbers rise");
}

const stories = {
  async talk() {
    const agent = await made("bash_fail");
    assert.match(agent.id, /^agent-[0-9a-f-]{36}$/);
    const pieces = await all(await begin(agent, "go", { include_pings: true }));
    const whole = await all(await client.agents.messages.stream(agent.id, { messages: [{ role: "user", content: "go" }] }));
    for (const messages of [pieces, whole]) {
      assertEnds(messages, "end_turn");
      assert.equal(text(messages), "The command failed with exit code 3.");
      const [call] = calls(messages);
      assert.deepEqual([call.name, call.input.description], ["Bash", "Fail on purpose"]);
      const [result] = of(messages, "tool_return_message");
      assert.deepEqual([result.status, result.tool_return], ["error", "Exit code 3\noops\npartial"]);
    }
    assert.deepEqual(calls(pieces), calls(whole));
    assert.equal(of(whole, "assistant_message").length, 1, "one frame for an item");
    assert.ok(1 < of(pieces, "assistant_message").length, "and one for each piece");
    assert.equal(new Set(of(pieces, "assistant_message").map((message) => message.otid)).size, 1);

    const answer = await client.agents.messages.create(agent.id, { input: "go" });
    assert.equal(answer.stop_reason.stop_reason, "end_turn");
    assert.equal(text(answer.messages), text(whole));
    assert.ok(0 < answer.usage.total_tokens);

    const thinker = await made("thinking_partial");
    const thought = await all(await begin(thinker, "go"));
    assert.ok(reasoning(thought).length > 0);
    assert.equal(reasoning(thought), reasoning(await all(await begin(thinker, "go", { stream_tokens: false }))));

    const history = [];
    for await (const message of client.agents.messages.list(agent.id, { limit: 2, order: "asc" })) history.push(message);
    assert.equal(of(history, "user_message").length, 3);
    assert.deepEqual(types(history).slice(0, 4), ["user_message", "tool_call_message", "tool_return_message", "assistant_message"]);
    assert.equal(history.length, 12, "each message once, over pages");

    const ids = [];
    for await (const agent of client.agents.list({ limit: 1 })) ids.push(agent.id);
    assert.deepEqual(ids, [thinker.id, agent.id]);

    const runs = [];
    for await (const run of client.runs.list({ limit: 2 })) runs.push(run);
    assert.equal(runs.length, 5, "each run once, over pages and agents");
    assert.ok(runs.every((run) => run.status === "completed" && run.stop_reason && run.completed_at));
    const count = async (query) => (await client.runs.list(query)).items.length;
    assert.equal(await count({ agent_id: agent.id, statuses: ["completed", "failed"] }), 3);
    assert.deepEqual([await count({ active: true }), await count({ stop_reason: "error" })], [0, 0]);
    await client.agents.delete(agent.id);
    await assert.rejects(client.agents.retrieve(agent.id), NotFoundError);
  },

  async error() {
    const agent = await made("fake");
    const seen = [];
    const failed = async () => {
      for await (const message of await begin(agent, { mode: "crash", deltas: 3 })) seen.push(message);
    };
    await assert.rejects(failed(), (error) => error instanceof APIError && /exit/.test(error.message));
    assert.equal(text(seen), numbers(3), "what came before it was seen");
    assert.equal(seen.at(-1).stop_reason, "error");
    const answer = await client.agents.messages.create(agent.id, { input: JSON.stringify({ mode: "crash", deltas: 3 }) });
    assert.equal(answer.stop_reason.stop_reason, "error");
    assert.equal(text(answer.messages), numbers(3));
    await assert.rejects(client.agents.messages.create("agent-none", { input: "x" }), NotFoundError);
    await assert.rejects(client.agents.messages.create(agent.id, { messages: [] }), (error) => error.status === 422);
  },

  // After a timeout or a lost connection, a client repeats its message. The agent must get it only once.
  async retry() {
    const agent = await made("fake");
    const gate = file("gate");
    const hasty = new Letta({ baseURL: base, apiKey: token, timeout: 300, maxRetries: 2 });
    const script = JSON.stringify({ deltas: 6, gate, gate_after: 3 });
    const answer = hasty.agents.messages.create(agent.id, { input: script });
    // Longer than the client's timeout, but the client has already seen the beginning of the response.
    await sleep(600);
    let tries = 0;
    const lossy = new Letta({
      baseURL: base,
      apiKey: token,
      fetch: async (url, options) => {
        tries += 1;
        if (tries < 3) throw new TypeError("the connection is lost");
        return fetch(url, options);
      },
    });
    const again = lossy.agents.messages.create(agent.id, { input: script });
    while (tries < 3) await sleep(5);
    writeFileSync(gate, "");
    assert.equal(text((await answer).messages), numbers(6));
    assert.deepEqual(await again, await answer);
    assert.equal((await client.runs.list({ agent_id: agent.id })).items.length, 1, "said once");
    const run = answer.then((answer) => answer.messages[0].run_id);
    const ahead = new Letta({ baseURL: base, apiKey: token, fetch: (...args) => (tries += 1, fetch(...args)) });
    tries = 0;
    await assert.rejects(ahead.runs.messages.stream(await run, { starting_after: 9999 }), (error) => error.status === 409);
    assert.equal(tries, 1, "it is told that trying again is no use");
  },

  async question() {
    for (const [optionId, words] of [["allow", "It was allowed."], ["reject", "It was refused."]]) {
      const agent = await made("asking");
      const seen = [];
      for await (const message of await begin(agent, "Clean up")) {
        seen.push(message);
        if (message.message_type !== "approval_request_message") continue;
        assert.deepEqual([message.tool_call.name, message.tool_call.arguments], ["Bash", '{"command":"rm -r build"}']);
        const path = `/api/agents/${agent.id.replace("agent-", "")}/permissions/${message.request_id}`;
        await client.post(path, { body: { optionId } });
      }
      assertEnds(seen, "end_turn");
      assert.equal(text(seen), words);
      const [asked] = of(seen, "approval_request_message");
      const [answered] = of(seen, "approval_response_message");
      assert.equal(answered.approve, optionId === "allow");
      assert.equal(answered.approval_request_id, asked.id);
      assert.equal(answered.approvals[0].tool_call_id, asked.tool_call.tool_call_id);
    }

    // In Letta's protocol, the response to an approval is the rest of the run.
    for (const [approve, words] of [[true, "It was allowed."], [false, "It was refused."]]) {
      const agent = await made("asking");
      const decided = (tool_call_id) => ({ messages: [{ type: "approval", approvals: [{ type: "approval", tool_call_id, approve }] }] });
      const seen = [];
      let rest;
      for await (const message of await begin(agent, "Clean up")) {
        seen.push(message);
        if (message.message_type !== "approval_request_message") continue;
        const body = { ...decided(message.tool_call.tool_call_id), streaming: true, stream_tokens: true };
        rest = all(await client.agents.messages.create(agent.id, body));
      }
      rest = await rest;
      assertEnds(rest, "end_turn");
      assert.equal(text(seen), words);
      assert.deepEqual(rest, seen.slice(-rest.length), "what comes after the question, and nothing else");
      assert.equal(rest[0].message_type, "approval_response_message");
      await assert.rejects(
        async () => client.agents.messages.create(agent.id, decided("t")),
        (error) => error instanceof APIError && error.status === 409,
      );
      await assert.rejects(
        async () => client.agents.messages.create(agent.id, decided("no such call")),
        (error) => error instanceof APIError && error.status === 422,
      );
    }
  },

  async cancel() {
    const agent = await made("fake");
    const seen = [];
    let asked;
    for await (const message of await begin(agent, { mode: "hang", deltas: 5 })) {
      seen.push(message);
      if (text(seen) === numbers(5)) asked ??= client.agents.messages.cancel(agent.id);
    }
    assert.deepEqual(Object.values(await asked), ["cancelled"]);
    assertEnds(seen, "cancelled");
    assert.equal((await client.runs.retrieve(seen[0].run_id)).status, "cancelled");
  },

  async resume() {
    const agent = await made("fake");
    for (const [round, stream_tokens] of [true, false].entries()) {
      const gate = file(`gate ${round}`);
      const script = { deltas: 30, gate, gate_after: 15, mode: stream_tokens ? "stream" : "tool" };
      const first = [];
      let run;
      for await (const message of await begin(agent, script, { background: true, stream_tokens })) {
        first.push(message);
        run = message.run_id;
        // A disconnect in the middle of the turn: leaving the loop closes the connection.
        if (first.length === (stream_tokens ? 7 : 1)) break;
      }
      assert.equal((await client.runs.retrieve(run)).status, "running", "nobody listens, and it runs on");
      const rest = all(await client.runs.messages.stream(run, { starting_after: first.at(-1).seq_id }));
      writeFileSync(gate, "");
      const whole = await all(await client.runs.messages.stream(run, { starting_after: 0 }));
      assert.deepEqual([...first, ...(await rest)], whole, "not one frame more or less");
      assert.equal(text(whole), numbers(30));
      assertEnds(whole, "end_turn");
      for (const [at, { seq_id }] of whole.entries()) {
        if (seq_id === undefined || (at % 5 !== 0 && stream_tokens)) continue;
        const tail = await all(await client.runs.messages.stream(run, { starting_after: seq_id }));
        assert.deepEqual(tail, whole.slice(at + 1));
      }
    }
  },

  async restart() {
    const agent = await made("fake");
    const seen = [];
    const gate = file("restarted");
    try {
      for await (const message of await begin(agent, { deltas: 20, gate, gate_after: 10 })) {
        seen.push(message);
        if (text(seen) === numbers(10)) writeFileSync(file("reached"), "");
      }
    } catch (error) {
      assert.equal(text(seen), numbers(10), error);
    }
    while (!existsSync(gate)) await sleep(5);
    const { run_id, seq_id } = seen.at(-1);
    const rest = await all(await client.runs.messages.stream(run_id, { starting_after: seq_id }));
    assert.equal(text([...seen, ...rest]), numbers(20));
    assertEnds(rest, "end_turn");
  },
};

await stories[story]();
process.exit(0);
