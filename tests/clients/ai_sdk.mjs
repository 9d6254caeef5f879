// The AI SDK, as an application would use it. Usage: BASE TOKEN FOLDER STORY …, run in the folder of one version.
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Chat } from "@ai-sdk/react";
import * as ai from "ai";

const [base, token, folder, story, ...rest] = process.argv.slice(2);
const api = `${base}/api/chat`;
const headers = { authorization: `Bearer ${token}` };
const http = (options = {}) => new ai.DefaultChatTransport({ api, headers, ...options });
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

async function until(holds, what) {
  for (const started = Date.now(); !holds(); await sleep(3)) {
    assert.ok(Date.now() - started < 30000, `it never came to that: ${what}`);
  }
}

let chats = 0;
function open(id, transport = http(), onData = () => {}) {
  const errors = [];
  const chat = new Chat({ id, transport, onData, onError: (error) => errors.push(error) });
  return Object.assign(chat, { errors });
}
const isNewest = process.cwd().endsWith("ai-7");
// The first releases put the id of a chat into an address without encoding it.
const encodesIds = !process.cwd().endsWith("-oldest");
const newId = (name) => (encodesIds ? `${name} ${story}/${chats++}` : `${story}-${chats++}`);
const script = (script) => JSON.stringify(script);
const answer = (chat) => chat.messages.at(-1);
const parts = (message, type) => message.parts.filter((part) => part.type === type);
const text = (message) => parts(message, "text").map((part) => part.text).join("");
const numbers = (count) => Array.from({ length: count }, (_, number) => `${number} `).join("");
const isAnswering = (chat) => answer(chat)?.role === "assistant" && text(answer(chat)).length > 0;
const isOpen = (part) =>
  ["streaming", "input-streaming", "input-available", "approval-requested", "approval-responded"].includes(part.state);
const said = (prompt, id) => [{ id, role: "user", parts: [{ type: "text", text: prompt }] }];

async function drain(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

async function fold(chunks) {
  let last;
  const stream = ReadableStream.from(chunks);
  for await (const message of ai.readUIMessageStream({ stream, terminateOnError: true })) last = message;
  return last;
}

function post(body, query = "") {
  const options = { method: "POST", headers: { ...headers, "content-type": "application/json" } };
  return fetch(api + query, { ...options, body: JSON.stringify(body) });
}

/** The earlier messages of a chat, and the id of the answer in progress. */
async function history(id, query = "") {
  const response = await fetch(`${api}/${encodeURIComponent(id)}/messages${query}`, { headers });
  assert.equal(response.status, 200);
  return { messages: await response.json(), run: response.headers.get("x-workflow-run-id") };
}

/** A page that was loaded again: the history, and then the answer in progress. */
async function reopen(id) {
  const { messages, run } = await history(id);
  const prepareReconnectToStreamRequest = () => ({ api: `${api}/${run}/stream`, headers });
  const chat = open(id, http({ prepareReconnectToStreamRequest }));
  chat.messages = messages;
  return { chat, run };
}

/** What a message shows. Older versions of the SDK leave out some of the other fields. */
function outline({ role, parts }) {
  return [role, ...plain(parts).map(({ type, text, state, toolName, input, output, data }) => ({ type, text, state, toolName, input, output, data }))];
}

/** A message as JSON. The number of a reasoning part is left out. */
function plain(message) {
  return JSON.parse(JSON.stringify(message), (name, value) => {
    if (value?.type !== "reasoning") return value;
    const { id: _, ...rest } = value;
    return rest;
  });
}

function stop(id) {
  return fetch(`${api}/${encodeURIComponent(id)}/stop`, { method: "POST", headers });
}

function assertClosed(message) {
  assert.deepEqual(message.parts.filter(isOpen), [], "no part is left open");
}

const stories = {
  async talk() {
    const chat = open(newId("talk"));
    await chat.sendMessage({ text: script({ mode: "tool", deltas: 7 }) });
    assert.equal(chat.status, "ready");
    assert.deepEqual(chat.errors, []);
    assert.equal(text(answer(chat)), numbers(7));
    const [tool] = parts(answer(chat), "dynamic-tool");
    assert.equal(tool.toolName, "Bash");
    assert.equal(tool.state, "output-available");
    assert.deepEqual(tool.input, { command: 'make "it"' });
    assert.equal(tool.output, "made");
    assertClosed(answer(chat));
    assert.equal(parts(answer(chat), "step-start").length, 2, "one for each request to the model");
    const { agentId, turn, outcome } = answer(chat).metadata;
    assert.deepEqual([turn, outcome], [1, "completed"]);

    await chat.sendMessage({ text: script({ deltas: 3 }) });
    assert.equal(text(answer(chat)), numbers(3));
    assert.equal(answer(chat).metadata.agentId, agentId, "the same agent");
    assert.equal(answer(chat).metadata.turn, 2);
    assert.equal(chat.messages.length, 4);
    await chat.regenerate();
    assert.equal(chat.messages.length, 4);
    assert.equal(answer(chat).metadata.turn, 3);
    assert.equal(text(answer(chat)), numbers(3));
    const said = chat.messages.at(-2).id;
    for (const turn of [4, 5]) {
      await chat.regenerate({ messageId: said });
      assert.equal(answer(chat).metadata.turn, turn, "by the message of the user, as often as it is asked for");
    }
    for (const [words, turn] of [[2, 6], [3, 7]]) {
      await chat.sendMessage({ text: script({ deltas: words }), messageId: said });
      assert.equal(text(answer(chat)), numbers(words));
      assert.equal(answer(chat).metadata.turn, turn, "edited, and edited back");
    }
    const large = { id: newId("large"), role: "assistant", parts: [{ type: "text", text: `${"x".repeat(2 << 20)}\ud83d` }] };
    chat.messages = [large, ...chat.messages];
    await chat.sendMessage({ text: script({ deltas: 4 }) });
    assert.deepEqual(chat.errors, []);
    assert.equal(text(answer(chat)), numbers(4), "whatever is in the history");
    const agent = await (await fetch(`${base}/api/agents/${agentId}`, { headers })).json();
    assert.equal(agent.turn, 8);
  },

  async question() {
    const [version] = rest;
    for (const [optionId, words] of [["allow", "It was allowed."], ["reject", "It was refused."]]) {
      const notices = [];
      const chat = open(newId("question"), http({ api: `${api}?v=${version}` }), (part) => notices.push(part));
      const done = chat.sendMessage({ text: "Clean up" });
      const asked = () => notices.find((part) => part.data.subtype === "permission_request")?.data.data;
      await until(asked, "the agent asks");
      const tool = () => parts(answer(chat), "dynamic-tool")[0];
      if (version !== "5") {
        await until(() => tool()?.state === "approval-requested", "the call waits to be approved");
        assert.equal(tool().approval.id, asked().requestId);
        assert.deepEqual([tool().toolName, tool().input], ["Bash", { command: "rm -r build" }]);
      }
      const path = `${base}/api/agents/${answer(chat).metadata.agentId}/permissions/${asked().requestId}`;
      const options = { method: "POST", headers: { ...headers, "content-type": "application/json" } };
      assert.equal((await fetch(path, { ...options, body: JSON.stringify({ optionId }) })).status, 200);
      await done;
      assert.deepEqual(chat.errors, []);
      assert.equal(text(answer(chat)), words);
      if (version !== "5" && optionId === "reject") assert.equal(tool().state, "output-denied");
      if (version === "7") assert.equal(tool().approval.approved, optionId === "allow");
      assertClosed(answer(chat));
    }
  },

  async error() {
    const chat = open(newId("error"));
    await chat.sendMessage({ text: script({ mode: "crash", deltas: 4, code: 3 }) });
    assert.equal(chat.status, "error");
    assert.equal(chat.errors.length, 1);
    assert.match(chat.error.message, /exit|code|end/i);
    assert.equal(text(answer(chat)), numbers(4), "what it had said is kept");
    assertClosed(answer(chat));

    const blank = open(newId("blank"));
    await blank.sendMessage({ text: "   " });
    assert.equal(blank.status, "error");
    assert.match(blank.error.message, /must contain text/, "what is wrong with a request can be read");
    const stranger = open(newId("stranger"), http({ headers: {} }));
    await stranger.sendMessage({ text: "hello" });
    assert.match(stranger.error.message, /token/);
  },

  async stop() {
    const id = newId("stop");
    const chat = open(id);
    const sent = chat.sendMessage({ text: script({ mode: "hang", deltas: 5 }) });
    await until(() => isAnswering(chat) && text(answer(chat)) === numbers(5), "five words");
    assert.equal((await stop(id)).status, 202);
    await sent;
    assert.deepEqual(chat.errors, []);
    assert.equal(chat.status, "ready");
    assert.equal(text(answer(chat)), numbers(5));
    assert.equal(answer(chat).metadata.outcome, "cancelled");
    assertClosed(answer(chat));
    assert.equal(await http().reconnectToStream({ chatId: id }), null, "nothing is active");
  },

  async resume() {
    const id = newId("ä ö%2F?");
    const gate = join(folder, "gate");
    const first = open(id);
    const sent = first.sendMessage({ text: script({ deltas: 40, gate, gate_after: 9 }) });
    await until(() => isAnswering(first) && text(answer(first)) === numbers(9), "nine words");
    const second = open(id);
    const resumed = second.resumeStream();
    await until(() => isAnswering(second) && text(answer(second)) === numbers(9), "the same nine words");
    // A disconnect does not stop the agent.
    await first.stop();
    await sent;
    writeFileSync(gate, "");
    await resumed;
    assert.equal(text(answer(second)), numbers(40));
    assert.equal(answer(second).id, answer(first).id);
    assertClosed(answer(second));
    assert.deepEqual(second.errors, []);
    assert.equal(await http().reconnectToStream({ chatId: id }), null);
    assert.equal(await http().reconnectToStream({ chatId: "never seen" }), null);
  },

  async again() {
    const body = { id: newId("again"), messages: said(script({ deltas: 6 }), "u1"), trigger: "submit-message" };
    const answers = await Promise.all([post(body), post(body), post(body)]);
    const runs = new Set(answers.map((response) => response.headers.get("x-workflow-run-id")));
    assert.equal(runs.size, 1, "one turn");
    const texts = await Promise.all(answers.map((response) => response.text()));
    const late = await (await post(body)).text();
    for (const told of texts) assert.equal(told, late, "the same bytes, live and afterwards");
    assert.ok(late.endsWith("data: [DONE]\n\n"));
    assert.equal(answers[0].headers.get("x-vercel-ai-ui-message-stream"), "v1");
    const transport = http();
    const options = { messages: body.messages, trigger: "submit-message", messageId: undefined };
    const chunks = await drain(await transport.sendMessages({ chatId: body.id, ...options }));
    assert.equal(chunks[0].type, "start");
    assert.equal(chunks.at(-1).type, "finish");
    assert.equal(text(await fold(chunks)), numbers(6));
  },

  async restart() {
    const id = newId("restart");
    const gate = join(folder, "gate");
    const first = open(id);
    const sent = first.sendMessage({ text: script({ deltas: 50, gate, gate_after: 11 }) });
    await until(() => isAnswering(first) && text(answer(first)) === numbers(11), "eleven words");
    writeFileSync(join(folder, "reached"), "");
    await sent;
    assert.equal(first.status, "error", "a connection that breaks off is no end of an answer");
    await until(() => existsSync(join(folder, "restarted")), "a server that is back");
    const second = open(id);
    const resumed = second.resumeStream();
    await until(() => isAnswering(second) && text(answer(second)) === numbers(11), "the same eleven words");
    writeFileSync(gate, "");
    await resumed;
    assert.equal(text(answer(second)), numbers(50));
    assert.equal(answer(second).id, answer(first).id);
    assert.deepEqual(second.errors, []);
  },

  async reload() {
    const id = newId("reload");
    assert.deepEqual(await history(id), { messages: [], run: null }, "a new chat");
    const first = open(id);
    await first.sendMessage({ text: script({ mode: "tool", deltas: 7 }) });
    await first.sendMessage({ text: script({ deltas: 3 }) });
    const { chat: idle, run: none } = await reopen(id);
    assert.equal(none, null, "nothing is being answered");
    assert.deepEqual(idle.messages.map(outline), first.messages.map(outline));

    // Loaded in the middle of an answer, twice: once the answer goes on, and once it has ended before it is resumed.
    const gate = join(folder, "gate");
    const sent = first.sendMessage({ text: script({ deltas: 40, gate, gate_after: 9 }) });
    await until(() => isAnswering(first) && text(answer(first)) === numbers(9), "nine words");
    const [live, late] = [await reopen(id), await reopen(id)];
    assert.deepEqual(live.chat.messages.map(({ role }) => role), ["user", "assistant", "user", "assistant", "user"]);
    const resumed = live.chat.resumeStream();
    await until(() => isAnswering(live.chat) && text(answer(live.chat)) === numbers(9), "the same nine words");
    writeFileSync(join(folder, "reached"), "");
    await Promise.allSettled([sent, resumed]);
    await until(() => existsSync(join(folder, "restarted")), "a server that was killed is back");
    const back = await reopen(id);
    const continued = back.chat.resumeStream();
    await until(() => isAnswering(back.chat) && text(answer(back.chat)) === numbers(9), "nine words again");
    writeFileSync(gate, "");
    await continued;
    await late.chat.resumeStream();
    for (const { chat } of [back, late]) {
      assert.deepEqual(chat.errors, []);
      assert.equal(chat.messages.length, 6);
      assert.equal(text(answer(chat)), numbers(40), "each word once");
    }
    const { messages } = await history(id);
    assert.deepEqual(messages.map(outline), back.chat.messages.map(outline), "what was streamed is what is read");

    // The conversation goes on from what was loaded.
    await back.chat.sendMessage({ text: script({ deltas: 2 }) });
    assert.equal(answer(back.chat).metadata.turn, 4);
    const newest = await history(id, "?limit=1");
    assert.deepEqual(newest.messages.map(({ metadata }) => metadata.turn), [4, 4]);
    const earlier = await history(id, "?limit=2&before=4");
    assert.deepEqual(earlier.messages, messages.slice(2), "earlier pages");
  },

  async recordings(agents, versions) {
    for (const version of new Set(versions.split(","))) await stories.recordingsAs(version, agents);
  },

  async recordingsAs(version, agents) {
    let spoken = 0, reasoned = 0, called = 0;
    for (const [agentName, agent] of agents.split(",").map((pair) => pair.split("="))) {
      const name = `${agentName}${version}`;
      const chunks = await drain(await http().reconnectToStream({ chatId: `run-${agent}-1${version}` }));
      assert.equal(chunks[0].type, "start", name);
      assert.equal(chunks.at(-1).type, "finish", name);
      const error = chunks.find((chunk) => chunk.type === "error");
      let message;
      try {
        message = await fold(chunks);
      } catch (thrown) {
        assert.equal(thrown.message, error?.errorText, name);
        message = await fold(chunks.filter((chunk) => chunk.type !== "error"));
      }
      assert.deepEqual(message?.parts.filter(isOpen) ?? [], [], name);
      const { messages } = await history(`run-${agent}-1`, version.replace("-", "?").replace("v", "v="));
      assert.deepEqual(messages.map(({ role }) => role), ["user", "assistant"], name);
      const same = isNewest ? plain : outline;
      assert.deepEqual(same(messages[1]), same(message), `${name}: what is streamed is what is read`);
      const events = await (await fetch(`${base}/api/agents/${agent}/events?limit=500`, { headers })).json();
      const turn = events.filter((event) => event.metadata.eventType === "message" && !event.metadata.parentToolCallId);
      if (events.length < 500 && !events.some((event) => event.metadata.eventType === "abandoned")) {
        const end = events.findIndex((event) => event.metadata.eventType === "result");
        const first = turn.filter((event) => events.indexOf(event) < end);
        const blocks = (event) => (typeof event.content === "string" ? [{ type: "text", text: event.content }] : event.content);
        const words = first.flatMap(blocks).filter((block) => block.type === "text").map((block) => block.text).join("");
        if (words) assert.equal(text(message), words, `${name}: what the agent has said`);
      }
      spoken += parts(message, "text").length;
      reasoned += parts(message, "reasoning").length;
      called += parts(message, "dynamic-tool").length;
    }
    assert.ok(spoken > 30 && reasoned > 0 && called > 10, `${spoken} ${reasoned} ${called}`);
  },

  async workflow() {
    const { WorkflowChatTransport } = await import("@ai-sdk/workflow/client");
    const gate = join(folder, "gate");
    const asked = [];
    // A connection that breaks after this many bytes, at any position in a chunk.
    const fragile = async (url, options) => {
      asked.push(String(url));
      const response = await fetch(url, { ...options, headers: { ...options?.headers, ...headers } });
      if (asked.length > 3 || !response.body) return response;
      let left = 1500;
      const cut = new TransformStream({
        transform(bytes, to) {
          to.enqueue(bytes.subarray(0, left));
          left -= bytes.length;
          if (asked.length === 2) writeFileSync(gate, "");
          if (left <= 0) to.error(new Error("the line is cut"));
        },
      });
      return new Response(response.body.pipeThrough(cut), { status: response.status, headers: response.headers });
    };
    console.error = () => {};
    const transport = new WorkflowChatTransport({ api, fetch: fragile, maxConsecutiveErrors: 10 });
    const prompt = script({ deltas: 60, gate, gate_after: 10 });
    const options = { messages: said(prompt, "w1"), trigger: "submit-message", messageId: undefined };
    const chunks = await drain(await transport.sendMessages({ chatId: "unused", ...options }));
    assert.ok(asked.length > 3, asked.join("\n"));
    assert.match(asked[1], /\/api\/chat\/run-[0-9a-f-]+\/stream\?startIndex=[1-9]/);
    assert.equal(text(await fold(chunks)), numbers(60));

    const run = asked[1].match(/run-[0-9a-f-]+/)[0];
    const whole = await drain(await http().reconnectToStream({ chatId: run }));
    assert.deepEqual(chunks, whole, "each chunk once, in order");
    const from = async (index) => {
      const response = await fetch(`${api}/${run}/stream?startIndex=${index}`, { headers });
      const lines = (await response.text()).split("\n").filter((line) => line.startsWith("data: {"));
      return [lines.map((line) => JSON.parse(line.slice(6))), response.headers.get("x-workflow-stream-tail-index")];
    };
    for (const index of [0, 1, 5, whole.length - 1, whole.length]) {
      assert.deepEqual((await from(index))[0], whole.slice(index));
    }
    assert.deepEqual(await from(-7), [whole.slice(-7), String(whole.length - 1)]);
    assert.deepEqual((await from(-1000))[0], whole);
    const tail = new WorkflowChatTransport({ api, fetch: fragile, initialStartIndex: -12 });
    assert.equal((await drain(await tail.reconnectToStream({ chatId: run }))).at(-1).type, "finish");

    // The conversation continues although the client does not name a chat.
    const second = [...said(prompt, "w1"), await fold(chunks), ...said(script({ deltas: 2 }), "w2")];
    const more = await fold(await drain(await transport.sendMessages({ ...options, chatId: "unused", messages: second })));
    assert.equal(more.metadata.agentId, chunks[0].messageMetadata.agentId);
    assert.equal(more.metadata.turn, 2);
  },

  async socket() {
    const protocols = ["tokenrail.v1", `bearer.${token}`];
    const socket = () => new ai.WebSocketChatTransport({ url: api, protocols });
    const gate = join(folder, "gate");
    const shared = socket();
    const slow = open(newId("slow"), shared);
    const sent = slow.sendMessage({ text: script({ deltas: 30, gate, gate_after: 4 }) });
    await until(() => isAnswering(slow) && text(answer(slow)) === numbers(4), "four words");

    const quick = open(newId("quick"), shared);
    await quick.sendMessage({ text: script({ mode: "tool", deltas: 5 }) });
    assert.equal(text(answer(quick)), numbers(5), "on the same connection, meanwhile");
    assert.equal(parts(answer(quick), "dynamic-tool")[0].output, "made");

    const other = open(slow.id, socket());
    const resumed = other.resumeStream();
    await until(() => isAnswering(other) && text(answer(other)) === numbers(4), "the same four words");
    shared.close();
    await sent;
    assert.equal(slow.status, "error", "its connection is gone");
    writeFileSync(gate, "");
    await resumed;
    assert.equal(text(answer(other)), numbers(30));
    assert.deepEqual(other.errors, []);
    assert.equal(await socket().reconnectToStream({ chatId: slow.id }), null);
    assert.equal(await socket().reconnectToStream({ chatId: "never seen" }), null);

    const stopped = open(newId("stopped"), socket());
    const hanging = stopped.sendMessage({ text: script({ mode: "hang", deltas: 3 }) });
    await until(() => isAnswering(stopped) && text(answer(stopped)) === numbers(3), "three words");
    const { agentId } = answer(stopped).metadata;
    await stopped.stop();
    await hanging;
    let agent;
    for (const started = Date.now(); agent?.status !== "cancelled"; await sleep(5)) {
      assert.ok(Date.now() - started < 30000, `it is ${agent?.status}`);
      agent = await (await fetch(`${base}/api/agents/${agentId}`, { headers })).json();
    }

    const wrong = open(newId("wrong"), socket());
    await wrong.sendMessage({ text: " " });
    assert.match(wrong.error.message, /must contain text/);
    await wrong.sendMessage({ text: script({ deltas: 1 }) });
    assert.equal(text(answer(wrong)), numbers(1), "an error is not the end of the connection");
    process.exit(0);
  },
};

await stories[story](...rest);
console.log(`${story}: good`);
