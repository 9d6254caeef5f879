// The page: agents on the left, one conversation on the right. It holds `last`, the highest number applied, and comes
// back with it whenever the connection breaks. What agents say becomes text nodes and nothing else.
const token = takeToken();
const $ = (id) => document.getElementById(id);
const agents = new Map();
let current = null; // the id of the agent that is shown
let last = 0; // the number up to which it is shown
let messages = new Map(); // message id -> part -> element
let socket = null;
let pause = 250;

function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem("token") ?? "";
}

async function call(method, path, body) {
  const headers = { Authorization: `Bearer ${token}`, ...(body && { "Content-Type": "application/json" }) };
  const answer = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
  if (!answer.ok) throw new Error((await answer.json()).detail ?? answer.statusText);
  return answer.json();
}

function connect() {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  socket = new WebSocket(`${scheme}://${location.host}/ws`, ["tokenrail.v1", `bearer.${token}`]);
  socket.onopen = async () => {
    pause = 250;
    $("state").textContent = "live";
    for (const agent of await call("GET", "/api/agents?limit=50")) agents.set(agent.agentId, agent);
    list();
    if (current) subscribe();
  };
  socket.onmessage = (message) => hear(JSON.parse(message.data));
  socket.onclose = () => {
    $("state").textContent = token ? "the server is away; trying again" : "open the address that the server printed: it holds the token";
    if (token) setTimeout(connect, pause + Math.random() * pause);
    pause = Math.min(pause * 2, 5000);
  };
}

function hear({ type, payload }) {
  if (type === "agent:created") agents.set(payload.agent.agentId, payload.agent);
  if (type === "agent:updated" && agents.has(payload.agentId)) agents.get(payload.agentId).status = payload.status;
  if (type === "agent:deleted") agents.delete(payload.agentId);
  if (type.startsWith("agent:") && type !== "agent:message") list();
  if (type === "agent:message" && payload.agentId === current) apply(payload.message);
  if (type === "error") $("state").textContent = payload.message;
}

function subscribe() {
  socket.send(JSON.stringify({ type: "subscribe", payload: { agentId: current, since: last } }));
}

function show(id) {
  if (current && socket.readyState === WebSocket.OPEN)
    socket.send(JSON.stringify({ type: "unsubscribe", payload: { agentId: current } }));
  [current, last, messages] = [id, 0, new Map()];
  $("events").replaceChildren();
  $("hint").hidden = true;
  history.replaceState(null, "", `/agents/${id}`);
  list();
  if (socket.readyState === WebSocket.OPEN) subscribe();
}

function list() {
  const rows = [...agents.values()].sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1)).map((agent) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = `${agent.name ?? agent.prompt.slice(0, 60)} · ${agent.status}`;
    button.setAttribute("aria-current", String(agent.agentId === current));
    button.onclick = () => show(agent.agentId);
    const row = document.createElement("li");
    row.append(button);
    return row;
  });
  $("agents").replaceChildren(...rows);
}

function apply(event) {
  if (event.sequenceNumber !== last + 1) {
    if (event.sequenceNumber > last + 1) subscribe(); // a gap: ask again from where we are
    return;
  }
  last = event.sequenceNumber;
  const stick = innerHeight + scrollY > document.body.scrollHeight - 80;
  draw(event);
  if (stick) scrollTo(0, document.body.scrollHeight);
}

function draw(event) {
  const { eventType, messageId, part, toolName, isError, outcome, durationMs } = event.metadata;
  const text = typeof event.content === "string" ? event.content : "";
  if (eventType === "user_message") add("bubble user", text);
  else if (eventType === "content_delta") piece(messageId, part, "bubble").append(text);
  else if (eventType === "thinking_delta") piece(messageId, part, "bubble thinking").append(text);
  else if (eventType === "message") complete(event);
  else if (eventType === "abandoned") forget(messageId);
  else if (eventType === "tool_use") add("tool", `${toolName} ${JSON.stringify(event.content.input, null, 1)}`);
  else if (eventType === "tool_result") add(isError ? "tool bad" : "tool", plain(event.content));
  else if (event.type === "error") add("bubble bad", text);
  else if (eventType === "result")
    add(`note ${outcome === "completed" ? "good" : "bad"}`, `${outcome} in ${((durationMs ?? 0) / 1000).toFixed(1)} s · ${last} events, all of them saved`);
}

// A complete message replaces its deltas: same text, and nothing that was thrown away.
function complete(event) {
  const parts = messages.get(event.metadata.messageId);
  const blocks = typeof event.content === "string" ? [{ type: "text", text: event.content }] : event.content;
  if (!parts) for (const block of blocks) if (block.text) add(block.type === "reasoning" ? "bubble thinking" : "bubble", block.text);
  messages.delete(event.metadata.messageId);
}

function forget(messageId) {
  for (const element of messages.get(messageId)?.values() ?? []) element.remove();
  messages.delete(messageId);
}

function piece(messageId, part, name) {
  if (!messages.has(messageId)) messages.set(messageId, new Map());
  const parts = messages.get(messageId);
  if (!parts.has(part)) parts.set(part, add(name, ""));
  return parts.get(part);
}

function plain(content) {
  if (typeof content === "string") return content;
  return Array.isArray(content) ? content.map((block) => block.text ?? "").join("\n") : JSON.stringify(content);
}

function add(name, text) {
  const element = document.createElement("div");
  element.className = name;
  element.textContent = text;
  $("events").append(element);
  return element;
}

$("demo").onclick = async () => {
  try {
    show((await call("POST", "/api/agents", { type: "demo", prompt: "Show me what Tokenrail does." })).agentId);
  } catch (error) {
    $("state").textContent = error.message;
  }
};
connect();
const asked = location.pathname.match(/^\/agents\/([0-9a-f-]+)$/);
if (asked) show(asked[1]);
