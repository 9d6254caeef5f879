// Socket.IO's client, as an application would use it. Usage: BASE TOKEN FOLDER STORY, run in the folder of the client.
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { io } from "socket.io-client";

const [base, token, folder, story] = process.argv.slice(2);
const file = (name) => join(folder, name);
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const TRANSPORTS = [undefined, ["websocket"], ["polling"]];

async function request(method, path, body) {
  const answer = await fetch(base + path, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${await (answer.ok ? "" : answer.text())}`);
  return answer.status === 204 ? undefined : answer.json();
}
const api = { get: (path) => request("GET", `/api${path}`), post: (path, body) => request("POST", `/api${path}`, body) };
const launch = async (script) => (await api.post("/agents", { type: "fake", prompt: JSON.stringify(script) })).agentId;
async function events(id) {
  const all = [];
  for (;;) {
    const page = await api.get(`/agents/${id}/events?since=${all.length}`);
    if (page.length === 0) return all;
    all.push(...page);
  }
}

const open = (options = {}) => io(base, { auth: { token }, forceNew: true, ...options });
const connected = (socket) =>
  new Promise((done, failed) => {
    socket.once("connect", done);
    socket.once("connect_error", failed);
  });
const once = (socket, name, fits = () => true) =>
  new Promise((done) => {
    const heard = (value) => {
      if (!fits(value)) return;
      socket.off(name, heard);
      done(value);
    };
    socket.on(name, heard);
  });

// Keeps the events of an agent. `applied` is the number of the newest event.
function follow(socket, id) {
  const seen = { messages: [], applied: 0, names: new Set() };
  socket.onAny((name, value) => value.agentId === id && seen.names.add(name));
  socket.on("agent:message", ({ agentId, sequence, message, timestamp }) => {
    if (agentId !== id) return;
    assert.equal(sequence, message.sequenceNumber);
    assert.equal(sequence, seen.applied + 1, "each number once, in order");
    assert.match(timestamp, /^\d{4}-.*Z$/);
    seen.messages.push(message);
    seen.applied = sequence;
  });
  return seen;
}

// Follows an agent over lost connections. Each one continues after the newest event.
function resuming(id, transports) {
  const since = { [id]: 0 };
  const socket = open({
    ...(transports ? { transports } : {}),
    auth: (give) => give({ token, since: { ...since } }),
    reconnectionDelay: 20,
    reconnectionDelayMax: 50,
  });
  const seen = follow(socket, id);
  socket.on("agent:message", () => (since[id] = seen.applied));
  return { socket, seen };
}

const stories = {
  // The rooms, the acknowledgements, the seven events and all transports.
  async talk() {
    for (const transports of TRANSPORTS) {
      const socket = open(transports ? { transports } : {});
      await connected(socket);
      const created = once(socket, "agent:created");
      const id = await launch({ deltas: 60 });
      assert.equal((await created).agent.agentId, id);
      const seen = follow(socket, id);
      const complete = once(socket, "agent:complete", (value) => value.agentId === id);
      const ack = await socket.timeout(20_000).emitWithAck("subscribe", { agentId: id });
      assert.deepEqual([ack.ok, ack.agentId], [true, id]);
      assert.equal((await complete).result.status, "completed");
      const saved = await events(id);
      // The event with the number comes last.
      while (seen.applied < saved.length) await sleep(5);
      assert.deepEqual(seen.messages, saved, "the events of the journal, from the first one on");
      const name = transports ? transports[0] : "websocket";
      while (socket.io.engine.transport.name !== name) await sleep(5);

      const left = await socket.timeout(20_000).emitWithAck("unsubscribe", { agentId: id });
      assert.equal(left.ok, true);
      await api.post(`/agents/${id}/messages`, { content: JSON.stringify({ deltas: 1 }) });
      const deleted = once(socket, "agent:deleted", (value) => value.agentId === id);
      await once(socket, "agent:updated", (value) => value.agentId === id && value.status === "completed");
      assert.equal(seen.applied, saved.length, "a room that was left is silent");
      await request("DELETE", `/api/agents/${id}`);
      await deleted;
      const wrong = await socket.timeout(20_000).emitWithAck("subscribe", { agentId: "x" });
      assert.deepEqual([wrong.ok, wrong.error.code], [false, "not_found"]);
      for (const name of ["agent:message", "agent:status", "agent:complete", "agent:updated", "agent:deleted"]) {
        assert.ok(seen.names.has(name), name);
      }
      const failing = await launch({ mode: "crash", deltas: 1, code: 3 });
      const error = once(socket, "agent:error", (value) => value.agentId === failing);
      socket.emit("subscribe", { agentId: failing });
      assert.ok((await error).error);
      socket.close();
    }
  },

  async access() {
    for (const transports of TRANSPORTS) {
      for (const auth of [undefined, { token: "wrong" }]) {
        const socket = io(base, { auth, forceNew: true, ...(transports ? { transports } : {}) });
        const error = await connected(socket).then(() => assert.fail("connected"), (error) => error);
        assert.equal(error.data?.code, "unauthenticated", `${error} ${JSON.stringify(error.data)}`);
        socket.close();
      }
      const extraHeaders = { authorization: `Bearer ${token}` };
      const socket = io(base, { extraHeaders, forceNew: true, ...(transports ? { transports } : {}) });
      await connected(socket);
      socket.close();
    }
    const socket = io(`${base}/admin`, { auth: { token }, forceNew: true });
    const error = await connected(socket).then(() => assert.fail("connected"), (error) => error);
    assert.equal(error.message, "Invalid namespace");
    socket.close();
  },

  async binary() {
    for (const transports of TRANSPORTS) {
      const socket = open(transports ? { transports, reconnection: false } : { reconnection: false });
      await connected(socket);
      const error = once(socket, "error");
      const gone = once(socket, "disconnect");
      socket.emit("subscribe", Buffer.from("x"));
      assert.equal((await error).message, "binary data is not supported; send JSON");
      await gone;
      socket.close();
    }
  },

  // The server is killed while a tool runs, and started again. The tool ends, and the client has its call and its result.
  async tool() {
    for (const [at, transports] of TRANSPORTS.entries()) {
      const gate = file(`gate-${at}`);
      const id = await launch({ mode: "tool", deltas: 20, gate });
      const { socket, seen } = resuming(id, transports);
      const kinds = () => seen.messages.map((message) => message.metadata.eventType);
      while (!kinds().includes("tool_use")) await sleep(5);
      const again = once(socket, "subscribed");
      writeFileSync(file(`reached-${at}`), "");
      await again;
      assert.ok(!kinds().includes("tool_result"), "the tool still runs");
      writeFileSync(gate, "");
      while (!kinds().includes("result")) await sleep(5);
      assert.ok(kinds().includes("tool_result"));
      assert.deepEqual(seen.messages, await events(id));
      socket.close();
    }
  },

  // The server is killed in mid-stream and started again. The client reconnects by itself and misses nothing.
  async restart() {
    for (const [at, transports] of TRANSPORTS.entries()) {
      const id = await launch({ deltas: 400, pace_us: 10_000, word: "🦀 " });
      const { socket, seen } = resuming(id, transports);
      const complete = once(socket, "agent:complete", (value) => value.agentId === id);
      while (seen.applied < 20) await sleep(5);
      const again = once(socket, "subscribed");
      writeFileSync(file(`reached-${at}`), "");
      await again;
      assert.equal((await complete).result.status, "completed");
      const saved = await events(id);
      while (seen.applied < saved.length) await sleep(5);
      assert.deepEqual(seen.messages, saved);
      socket.close();
    }
  },
};

await stories[story]();
