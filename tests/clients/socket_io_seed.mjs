// A client that was written for another server of the same events. Its code is in the folder CODE, and runs as it
// stands there. Usage: BASE TOKEN FOLDER CODE STORY, run in the folder of Socket.IO's client.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { io } from "socket.io-client";

const [base, token, folder, code, story] = process.argv.slice(2);
const file = (name) => join(folder, name);
const read = (name) => readFileSync(join(code, name), "utf8");
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const failures = [];
process.on("uncaughtException", (error) => failures.push(error));
const until = async (holds) => {
  for (;;) {
    if (failures.length) throw failures[0];
    if (await holds()) return;
    await sleep(5);
  }
};
const TRANSPORTS = [undefined, ["websocket"], ["polling"]];

async function request(method, path, body) {
  const answer = await fetch(base + path, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${await (answer.ok ? "" : answer.text())}`);
  return answer.json();
}
const get = (path) => request("GET", `/api${path}`);
const post = (path, body) => request("POST", `/api${path}`, body);
async function events(id) {
  const all = [];
  for (;;) {
    const page = await get(`/agents/${id}/events?since=${all.length}`);
    if (page.length === 0) return all;
    all.push(...page);
  }
}

// What the agents of the code say, whatever their prompt is.
const say = (script) => writeFileSync(file("script"), `${JSON.stringify(script)}\n`);
const isEnd = (message) => message.metadata.eventType === "result";
const isDelta = (message) => message.metadata.eventType === "content_delta";

const expect = (value) => ({
  toHaveProperty: (name, ...expected) => {
    assert.ok(name in value, name);
    if (expected.length) assert.equal(value[name], expected[0]);
  },
  toHaveLength: (length) => assert.equal(value.length, length),
});

// Runs the code's own test. `said` is true once the agent has said what the test sees of it.
async function test(transports, said) {
  const tests = [];
  const messages = [];
  const client = {
    it: (name, body) => tests.push(body()),
    expect,
    io: () => {
      const socket = io(base, { auth: { token }, forceNew: true, ...(transports ? { transports } : {}) });
      client.socket = socket;
      socket.on("agent:message", ({ message }) => messages.push(message));
      return socket;
    },
    api: {
      post,
      get: async (path) => {
        await until(() => messages.some(said));
        return get(path);
      },
    },
  };
  new Function("it", "expect", "io", "api", read("streaming.test.js"))(client.it, expect, client.io, client.api);
  assert.equal(tests.length, 1);
  await Promise.all(tests);
  assert.deepEqual(failures, []);
  return { socket: client.socket, messages };
}

const stories = {
  // Its test finds each message that it has seen, in the middle of a text and of an agent that does not stream.
  async test() {
    for (const [at, transports] of TRANSPORTS.entries()) {
      const gate = file(`gate-${at}`);
      say({ deltas: 60, gate, gate_after: 40 });
      const { socket, messages } = await test(transports, (message) => message.content === "39 ");
      assert.equal(messages.filter(isDelta).length, 40);
      writeFileSync(gate, "");
      await until(() => messages.some(isEnd));
      const id = messages[0].agentId;
      assert.deepEqual(messages, await events(id));
      // When a message is complete, only the whole of it is there.
      assert.deepEqual(await get(`/agents/${id}/messages`), messages.filter((message) => !isDelta(message)));
      socket.close();

      say({ deltas: 0 });
      const whole = await test(transports, isEnd);
      assert.ok(whole.messages.length > 3);
      whole.socket.close();
    }
  },

  // Its hook reads the history, hears what comes, and fills gaps, while its server is killed and started again.
  async hook() {
    for (const [at, transports] of TRANSPORTS.entries()) {
      const { id, shown, socket, go } = await mounted({ deltas: 0 }, `gate-${at}`, transports);
      let again = false;
      socket.once("disconnect", () => socket.once("connect", () => (again = true)));
      go();
      await until(() => shown().length > 50);
      writeFileSync(file(`reached-${at}`), "");
      await until(() => again && shown().at(-1).metadata.eventType === "result");
      assert.deepEqual(shown(), await events(id), "each message once, in order");
      socket.close();
    }
    // The history has no deltas of an earlier text. They come by the socket, as the first turn's.
    const { id, shown, socket, go } = await mounted({ deltas: 10 }, "gate", ["websocket"]);
    go();
    const saved = async () => (await events(id)).filter((message) => !isDelta(message));
    await until(() => shown().filter(isEnd).length === 2 && isEnd(shown().at(-1)));
    assert.deepEqual(shown().filter((message) => !isDelta(message)), await saved());
    const numbers = shown().map((message) => message.sequenceNumber);
    assert.deepEqual(numbers, [...new Set(numbers)].sort((a, b) => a - b), "each once, in order");
    socket.close();
    assert.deepEqual(failures, []);
  },
};

// The hook of an agent that has had a first turn, and stops in the middle of its second one until it may `go`.
async function mounted(first, gate, transports) {
  say(first);
  const { agentId: id } = await post("/agents", { type: "claude-code", prompt: "test" });
  await until(async () => (await get(`/agents/${id}`)).status === "completed");
  say({ deltas: 400, pace_us: 10_000, word: "🦀 ", gate: file(gate), gate_after: 20 });
  await post(`/agents/${id}/messages`, { content: "more" });
  const more = async () => (await get(`/agents/${id}/messages`)).filter(isDelta).length;
  await until(async () => (await more()) === 20);

  const shown = mount(id);
  await until(() => 20 < shown().length);
  const socket = io(base, { auth: { token }, forceNew: true, ...(transports ? { transports } : {}) });
  socket.on("connect", () => socket.emit("subscribe", { agentId: id }));
  socket.on("agent:message", (detail) => {
    window.dispatchEvent(Object.assign(new Event("agent:message"), { detail }));
  });
  return { id, shown, socket, go: () => writeFileSync(file(gate), "") };
}

const window = new EventTarget();

// The hook, for an agent. Returns how to see its messages.
//
// As it is written, it is no program: it waits in a function that is not `async`, `fillGap` is not in it, and three names
// have no value. Nothing else is changed.
function hook() {
  const [hook, fillGap] = read("useAgentMessages.ts").split("\nconst fillGap");
  const waits = hook.replace("useEffect(() => {", "useEffect(async () => {");
  const [head, body] = waits.split(" = useState<AgentMessage[]>([]);");
  const whole = `${head} = useState<AgentMessage[]>([]);\nconst fillGap${fillGap}${body}`.replace("export ", "");
  const names = ["useState", "useRef", "useEffect", "ApiService", "window", "console", "loading", "error", "refetch"];
  return (values) => new Function(...names, `${stripTypeScriptTypes(whole)}; return useAgentMessages;`)(
    ...names.map((name) => values[name]),
  );
}

// As much of React as the hook needs.
function mount(id) {
  const [cells, effects] = [[], []];
  let at = 0;
  const cell = (first) => (cells[at++] ??= first());
  const use = hook()({
    useState: (first) => {
      const own = cell(() => ({ value: first }));
      const set = (next) => {
        own.value = typeof next === "function" ? next(own.value) : next;
        draw();
      };
      return [own.value, set];
    },
    useRef: (first) => cell(() => ({ current: first })),
    useEffect: (effect) => cell(() => effects.push(effect)),
    ApiService: {
      getAgentMessages: (agentId) => get(`/agents/${agentId}/messages`),
      getAgentMessagesSince: (agentId, since) => get(`/agents/${agentId}/messages?since=${since}`),
    },
    window,
    console: { log() {}, warn() {} },
  });
  let result;
  function draw() {
    at = 0;
    result = use(id);
    for (const effect of effects.splice(0)) effect();
  }
  draw();
  return () => result.messages;
}

try {
  await stories[story]();
} catch (error) {
  console.error(error);
  process.exit(1);
}
