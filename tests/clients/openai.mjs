// OpenAI's client, as an application would use it. Usage: BASE TOKEN FOLDER STORY, run in the folder of the client.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import OpenAI, { APIConnectionError, APIError, AuthenticationError, BadRequestError, NotFoundError } from "openai";

const [base, token, folder, story] = process.argv.slice(2);
const baseURL = `${base}/openai/v1`;
const client = new OpenAI({ baseURL, apiKey: token, maxRetries: 0 });
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const numbers = (count) => Array.from({ length: count }, (_, number) => `${number} `).join("");
const file = (name) => join(folder, name);
const fake = (script, options = {}) => ({ model: "fake", input: JSON.stringify(script), ...options });

async function all(stream) {
  const seen = [];
  for await (const event of stream) seen.push(event);
  return seen;
}
const text = (events) => events.filter((event) => event.type === "response.output_text.delta").map((event) => event.delta).join("");
const resumed = (id, after) => client.responses.retrieve(id, { stream: true, starting_after: after });

const user = (content) => ({ role: "user", content });
const completion = (script) => ({ model: "fake", messages: [user(JSON.stringify(script))] });
const content = (chunks) => chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("");
/** The stream of a chat completion, after a chunk. OpenAI's client has no method for this. */
const cut = (id, after) =>
  client.get(`/chat/completions/${id}`, { query: { stream: true, starting_after: after }, stream: true });

// What an agent says while its server is killed again and again. Each word shows its place.
const words = Array.from({ length: 400 }, (_, number) => `${number} 🦀 `);
const flow = { say: words, pace_us: 10_000 };

/** Reads a stream to its end. The server is killed three times while it comes. `after` opens what follows what was seen. */
async function overKills(first, after, isEnd) {
  const seen = [];
  let [kills, cuts] = [0, 0];
  for (let stream = first; seen.length === 0 || !isEnd(seen.at(-1)); stream = undefined) {
    let isWhole = false;
    try {
      for await (const event of stream ?? (await after(seen))) {
        seen.push(event);
        if (kills < 3 && 40 * (kills + 1) <= seen.length) {
          writeFileSync(file(`reached-${kills}`), "");
          kills += 1;
        }
      }
      isWhole = true;
    } catch (error) {
      // The server is away, or the connection breaks. Everything else is a failure.
      if (!(error instanceof APIConnectionError) && error.message !== "terminated") throw error;
      cuts += 1;
      await sleep(10);
    }
    assert.ok(!isWhole || isEnd(seen.at(-1)), "a stream that ends early does not look complete");
  }
  assert.ok(kills === 3 && 0 < cuts, `${kills} kills, ${cuts} cuts`);
  return seen;
}

// Recordings of a real agent: with tools, with a sub-agent, with an answer that was begun again, and with emoji.
const recorded = ["many_tools", "subagent_partial", "err_drop_once_slow", "thinking_partial"];

const stories = {
  async talk() {
    const first = await client.responses.create({ model: "bash_fail", input: "go", metadata: { n: "1" } });
    assert.equal(first.status, "completed");
    assert.equal(first.output_text, "The command failed with exit code 3.");
    const call = first.output.find((item) => item.type === "mcp_call");
    assert.deepEqual([call.server_label, call.name, call.status], ["bash_fail", "Bash", "failed"]);
    assert.equal(JSON.parse(call.arguments).description, "Fail on purpose");
    assert.equal(call.error.content[0].text, "Exit code 3\noops\npartial");
    assert.ok(0 < first.usage.total_tokens);

    const stream = client.responses.stream({ model: "bash_fail", input: "go", previous_response_id: first.id });
    const events = await all(stream);
    const second = await stream.finalResponse();
    assert.deepEqual([second.output_text, second.previous_response_id], [first.output_text, first.id]);
    assert.equal(text(events), first.output_text);
    assert.deepEqual(events.map((event) => event.sequence_number), events.map((_, at) => at));
    assert.deepEqual(await client.responses.retrieve(first.id), first);

    const input = [{ role: "user", content: "go" }, ...first.output, ...second.output, { role: "user", content: "go" }];
    const third = await client.responses.create({ model: "bash_fail", input });
    assert.equal(third.previous_response_id, second.id, "its items say which conversation it is");
    const asked = await all(client.responses.inputItems.list(third.id));
    assert.deepEqual(asked.map((item) => item.content[0].text), ["go"]);

    const thought = await client.responses.create({ model: "thinking_partial", input: "go" });
    assert.ok(thought.output.find((item) => item.type === "reasoning").summary[0].text);

    const models = await all(client.models.list());
    assert.equal(models[0].id, "fake");
    assert.equal((await client.models.retrieve("bash_fail")).owned_by, "tokenrail");
    await client.responses.delete(third.id);
    await assert.rejects(client.responses.retrieve(first.id), NotFoundError);
  },

  async error() {
    const seen = await all(await client.responses.create(fake({ mode: "crash", deltas: 3 }, { stream: true })));
    assert.equal(text(seen), numbers(3), "what came before it was seen");
    const { type, response } = seen.at(-1);
    assert.deepEqual([type, response.status], ["response.failed", "failed"]);
    assert.match(response.error.message, /exit/);
    const refused = (param) => (error) => error instanceof BadRequestError && error.param === param && error.message.length > 0;
    const tools = [{ type: "function", name: "x", parameters: {}, strict: false }];
    await assert.rejects(client.responses.create({ model: "fake", input: "x", tools }), refused("tools"));
    const later = { input: "x", previous_response_id: response.id, instructions: "y" };
    await assert.rejects(client.responses.create(later), refused("instructions"), "they come with the first prompt");
    await assert.rejects(client.responses.create({ model: "none", input: "x" }), refused("model"));
    await assert.rejects(client.responses.create({ input: "x", previous_response_id: "resp_1" }), refused("previous_response_id"));
    await assert.rejects(client.responses.retrieve("resp_1"), NotFoundError);
    await assert.rejects(client.embeddings.create({ model: "x", input: "y" }), NotFoundError);
    const stranger = new OpenAI({ baseURL, apiKey: "wrong", maxRetries: 0 });
    await assert.rejects(stranger.models.list(), (error) => error instanceof AuthenticationError && error.code === "invalid_api_key");
  },

  async cancel() {
    const { id } = await client.responses.create(fake({ mode: "hang", deltas: 5 }, { background: true }));
    const seen = [];
    let cancelled;
    for await (const event of await client.responses.retrieve(id, { stream: true })) {
      seen.push(event);
      if (text(seen) === numbers(5)) cancelled ??= client.responses.cancel(id);
    }
    assert.equal((await cancelled).status, "cancelled");
    assert.deepEqual([seen.at(-1).type, seen.at(-1).response.status], ["response.incomplete", "cancelled"]);
    const { status, output } = await client.responses.cancel(id);
    assert.deepEqual([status, output], ["cancelled", (await client.responses.retrieve(id)).output], "once is enough");
  },

  async resume() {
    const gate = file("gate");
    const first = [];
    for await (const event of await client.responses.create(fake({ deltas: 30, gate, gate_after: 15 }, { stream: true }))) {
      first.push(event);
      // A disconnect in the middle of the turn: leaving the loop closes the connection.
      if (first.length === 11) break;
    }
    const { id } = first[0].response;
    assert.equal((await client.responses.retrieve(id)).status, "in_progress", "nobody listens, and it runs on");
    const rest = all(await resumed(id, first.at(-1).sequence_number));
    writeFileSync(gate, "");
    const whole = await all(await client.responses.retrieve(id, { stream: true }));
    assert.deepEqual([...first, ...(await rest)], whole, "not one event more or less");
    assert.equal(text(whole), numbers(30));
    for (const { sequence_number } of whole) {
      assert.deepEqual(await all(await resumed(id, sequence_number)), whole.slice(sequence_number + 1));
    }
    for (const model of recorded) {
      const live = await all(await client.responses.create({ model, input: "go", stream: true }));
      assert.equal(live.at(-1).type, "response.completed", model);
      for (const { sequence_number } of live) {
        const rest = await all(await resumed(live[0].response.id, sequence_number));
        assert.deepEqual(rest, live.slice(sequence_number + 1), `${model} after ${sequence_number}`);
      }
    }
  },

  async restart() {
    const stream = await client.responses.create(fake(flow, { stream: true }));
    const after = (seen) => resumed(seen[0].response.id, seen.at(-1).sequence_number);
    const seen = await overKills(stream, after, (event) => event.type === "response.completed");
    assert.equal(text(seen), words.join(""));
    assert.deepEqual(seen, await all(await client.responses.retrieve(seen[0].response.id, { stream: true })));
  },

  async completions() {
    const headers = { "X-Conversation-Id": "talk" };
    const create = (body, options = { headers }) => client.chat.completions.create({ model: "bash_fail", ...body }, options);
    const first = await create({ messages: [user("go")] });
    const [{ message, finish_reason }] = first.choices;
    assert.deepEqual([message.content, finish_reason], ["The command failed with exit code 3.", "stop"]);
    assert.match(message.reasoning_content, /^Bash \{.*Fail on purpose/);
    assert.equal(message.tool_calls, undefined, "the client is not asked to call tools");
    assert.ok(0 < first.usage.total_tokens);
    assert.deepEqual(await client.chat.completions.retrieve(first.id), first);
    const stream = client.chat.completions.stream(
      { model: "bash_fail", messages: [user("go"), message, user("go")], stream_options: { include_usage: true } },
      { headers },
    );
    const second = await stream.finalChatCompletion();
    assert.equal(second.choices[0].message.content, message.content);
    assert.ok(0 < second.usage.total_tokens);
    const agents = await (await fetch(`${base}/api/agents`, { headers: { Authorization: `Bearer ${token}` } })).json();
    assert.equal(agents.length, 1, "a conversation is one agent");
    await client.chat.completions.delete(second.id);
    await assert.rejects(client.chat.completions.retrieve(first.id), NotFoundError);

    const failing = await create({ ...completion({ mode: "crash", deltas: 3 }), stream: true }, {});
    let seen = "";
    const readAll = async () => {
      for await (const chunk of failing) seen += chunk.choices[0]?.delta.content ?? "";
    };
    await assert.rejects(readAll(), (error) => error instanceof APIError && /exit/.test(error.message));
    assert.equal(seen, numbers(3), "what came before it was seen");
    const failed = await create(completion({ mode: "crash", deltas: 3 }), {});
    assert.deepEqual([failed.choices[0].message.content, failed.error.code], [null, "server_error"]);
    assert.match(failed.choices[0].message.refusal, /exit/);
    const tools = [{ type: "function", function: { name: "x" } }];
    const refused = (param) => (error) => error instanceof BadRequestError && error.param === param;
    await assert.rejects(create({ messages: [user("x")], tools }, {}), refused("tools"));
    await assert.rejects(create({ messages: [user("x")], model: "none" }, {}), refused("model"));
  },

  async cut_completions() {
    const gate = file("gate");
    const first = [];
    const script = completion({ deltas: 30, gate, gate_after: 15 });
    for await (const chunk of await client.chat.completions.create({ ...script, stream: true })) {
      first.push(chunk);
      if (first.length === 11) break;
    }
    const { id } = first[0];
    const rest = all(await cut(id, 10));
    writeFileSync(gate, "");
    const whole = await all(await cut(id));
    assert.deepEqual([...first, ...(await rest)], whole, "not one chunk more or less");
    assert.equal(content(whole), numbers(30));
    for (let after = 0; after < whole.length; after += 1) {
      assert.deepEqual(await all(await cut(id, after)), whole.slice(after + 1));
    }
    for (const model of recorded) {
      const live = await all(await client.chat.completions.create({ model, messages: [user("go")], stream: true }));
      assert.equal(live.at(-1).choices[0].finish_reason, "stop", model);
      for (let after = 0; after < live.length; after += 1) {
        assert.deepEqual(await all(await cut(live[0].id, after)), live.slice(after + 1), `${model} after ${after}`);
      }
    }
    assert.equal((await client.chat.completions.retrieve(id)).choices[0].message.content, numbers(30));
  },

  async restart_completions() {
    const stream = await client.chat.completions.create({ ...completion(flow), stream: true });
    const isEnd = (chunk) => chunk.choices[0]?.finish_reason === "stop";
    const seen = await overKills(stream, (seen) => cut(seen[0].id, seen.length - 1), isEnd);
    assert.equal(content(seen), words.join(""));
    assert.deepEqual(seen, await all(await cut(seen[0].id)));
  },
};

await stories[story]();
process.exit(0);
