// The server that a developer would write in an afternoon, for comparison with Tokenrail: Node, ws and better-sqlite3.
//
//     node server.mjs DATABASE AGENT each|read
//
// Each agent is a child process with pipes. Each token of its output is saved as a row, and then sent to all followers:
// saved first, sent second. `each` inserts every token separately. `read` inserts the result of one read of the
// pipe in one transaction, numbers it in memory, and passes all of it to each socket at once.
//
// It has the parts of Tokenrail's interface for the benchmark: POST /api/agents {prompt}, GET /api/agents/ID, and
// at /ws `subscribe {agentId}`, which returns everything from then on.

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import Database from "better-sqlite3";
import { WebSocketServer } from "ws";

const [file, program, way] = process.argv.slice(2);
if (!["each", "read"].includes(way)) throw new Error("usage: node server.mjs DATABASE AGENT each|read");

const database = new Database(file);
database.pragma("journal_mode = WAL");
database.pragma("synchronous = NORMAL");
database.pragma("foreign_keys = ON");
database.exec(`
  CREATE TABLE agents (id TEXT PRIMARY KEY, created_at TEXT NOT NULL);
  CREATE TABLE agent_messages (
    id TEXT PRIMARY KEY,
    agent_id TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    sequence_number INTEGER NOT NULL,
    type TEXT NOT NULL,
    role TEXT,
    content TEXT NOT NULL,
    raw TEXT,
    metadata TEXT,
    created_at TEXT NOT NULL,
    UNIQUE (agent_id, sequence_number)
  );
  CREATE INDEX idx_messages_agent_id ON agent_messages (agent_id);
  CREATE INDEX idx_messages_sequence ON agent_messages (agent_id, sequence_number);
  CREATE INDEX idx_messages_created_at ON agent_messages (created_at);`);
const insertAgent = database.prepare("INSERT INTO agents VALUES (?, ?)");
const insertNext = database.prepare(`
  INSERT INTO agent_messages
  VALUES (@id, @agentId,
    COALESCE((SELECT MAX(sequence_number) FROM agent_messages WHERE agent_id = @agentId), 0) + 1,
    @type, @role, @content, @raw, @metadata, @createdAt)
  RETURNING sequence_number AS sequenceNumber`);
const insertNumbered = database.prepare(`
  INSERT INTO agent_messages
  VALUES (@id, @agentId, @sequenceNumber, @type, @role, @content, @raw, @metadata, @createdAt)`);
const insertAll = database.transaction((messages) => {
  for (const message of messages) insertNumbered.run(asRow(message));
});

/** Agents by id: `{head, status, followers}`. */
const agents = new Map();

const asRow = (message) => ({ ...message, metadata: JSON.stringify(message.metadata) });

/** The token that a line displays, if any. */
function parse(line) {
  const { type, event } = JSON.parse(line);
  if (type !== "stream_event") return undefined;
  if (event.type === "content_block_delta") {
    const metadata = { eventType: "content_delta" };
    return { type: "assistant", role: "assistant", content: event.delta.text, metadata, raw: line };
  }
  if (event.type === "message_delta") {
    const metadata = { eventType: "message_delta", delta: event.delta, usage: event.usage };
    return { type: "system", role: "system", content: "", metadata, raw: line };
  }
  return undefined;
}

/** The frame of a message. The fields that the benchmark reads come first. */
function frame(message) {
  const { agentId, sequenceNumber: sequence } = message;
  const payload = { agentId, sequence, message };
  return JSON.stringify({ type: "agent:message", payload, timestamp: new Date().toISOString() });
}

function complete(agentId, line) {
  const parsed = parse(line);
  if (parsed === undefined) return undefined;
  const { raw, ...rest } = parsed;
  const createdAt = new Date().toISOString();
  return { id: randomUUID(), agentId, sequenceNumber: 0, ...rest, createdAt, raw };
}

function saveEach(agent, agentId, lines) {
  for (const line of lines) {
    const message = complete(agentId, line);
    if (message === undefined) continue;
    message.sequenceNumber = insertNext.get(asRow(message)).sequenceNumber;
    agent.head = message.sequenceNumber;
    const text = frame(message);
    for (const follower of agent.followers) follower.send(text);
  }
}

function saveRead(agent, agentId, lines) {
  const messages = lines.map((line) => complete(agentId, line)).filter((message) => message !== undefined);
  if (messages.length === 0) return;
  for (const message of messages) message.sequenceNumber = ++agent.head;
  insertAll(messages);
  const frames = messages.map((message) => Buffer.from(frame(message)));
  for (const follower of agent.followers) {
    follower._socket.cork();
    for (const bytes of frames) follower.send(bytes, { binary: false });
    follower._socket.uncork();
  }
}

const save = way === "each" ? saveEach : saveRead;

function launch(prompt) {
  const agentId = randomUUID();
  const agent = { head: 0, status: "running", followers: new Set() };
  agents.set(agentId, agent);
  insertAgent.run(agentId, new Date().toISOString());
  const child = spawn(program, [], { stdio: ["pipe", "pipe", "inherit"] });
  child.stdin.end(`${prompt}\n`);
  child.stdout.setEncoding("utf8");
  let rest = "";
  child.stdout.on("data", (data) => {
    const lines = (rest + data).split("\n");
    rest = lines.pop();
    save(agent, agentId, lines);
  });
  child.on("close", () => {
    agent.status = "completed";
    const ended = JSON.stringify({ type: "agent:complete", payload: { agentId, sequence: agent.head } });
    for (const follower of agent.followers) follower.send(ended);
  });
  return agentId;
}

const server = createServer((request, response) => {
  const answer = (status, body) => {
    const text = JSON.stringify(body);
    response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
    response.end(text);
  };
  if (request.method === "GET") {
    const agentId = request.url.split("/").pop();
    const agent = agents.get(agentId);
    if (agent === undefined) return answer(404, {});
    return answer(200, { agentId, head: agent.head, status: agent.status });
  }
  let body = "";
  request.on("data", (data) => { body += data; });
  return request.on("end", () => answer(201, { agentId: launch(JSON.parse(body).prompt) }));
});

const sockets = new WebSocketServer({ server, path: "/ws", perMessageDeflate: false });
sockets.on("connection", (socket) => {
  socket.on("error", () => socket.terminate());
  socket.on("message", (text) => {
    const { agentId } = JSON.parse(text).payload;
    const agent = agents.get(agentId);
    if (agent === undefined) return socket.close();
    agent.followers.add(socket);
    socket.on("close", () => agent.followers.delete(socket));
    return socket.send(JSON.stringify({ type: "subscribed", payload: { agentId } }));
  });
});

server.listen({ host: "127.0.0.1", port: 0, backlog: 4096 }, () => {
  console.log(`serving on http://127.0.0.1:${server.address().port}`);
});
