// What a page does with each client, for tests of other origins: `page.<story>({ baseUrl, token })`.
import { TokenrailClient, TokenrailError } from "@tokenrail/client";
import Letta from "@letta-ai/letta-client";
import { DefaultChatTransport } from "ai";

interface Server {
  baseUrl: string;
  token: string;
}

const script = JSON.stringify({ deltas: 20, pace_us: 1000 });

/** The output of an agent with Tokenrail's own client: launched, followed over a WebSocket, and read again in pages. */
async function ours({ baseUrl, token }: Server) {
  const client = new TokenrailClient({ baseUrl, token });
  const agent = await client.launch({ type: "fake", prompt: script });
  const live: number[] = [];
  for await (const event of client.follow(agent.id, { untilEnded: true })) live.push(event.sequenceNumber);
  const page = await client.messagesPage(agent.id, { since: 0, limit: 1 });
  const read = await client.messages(agent.id);
  await client.launch({ type: "fake", prompt: script });
  const listed = new Set<string>();
  for await (const { id } of client.eachAgent({ limit: 1 })) listed.add(id);
  return { id: agent.id, live, head: page.head, upTo: page.upTo, read: read.length, listed: listed.size };
}

/** The problem with which Tokenrail's own client is refused. */
async function refusal({ baseUrl, token }: Server) {
  const client = new TokenrailClient({ baseUrl, token });
  try {
    await client.launch({ type: "fake", prompt: script });
    return { code: "none", detail: "" };
  } catch (error) {
    const { code, problem, message } = error as TokenrailError;
    return { code, detail: problem?.detail ?? message };
  }
}

/** The text of a response to an AI SDK chat, and the response headers that the page may read. */
async function aiSdk({ baseUrl, token }: Server) {
  let run: string | null = null;
  const transport = new DefaultChatTransport({
    api: `${baseUrl}/api/chat`,
    headers: { Authorization: `Bearer ${token}` },
    fetch: async (input, init) => {
      const answer = await fetch(input, init);
      run = answer.headers.get("x-workflow-run-id");
      return answer;
    },
  });
  const message = { id: "m", role: "user" as const, parts: [{ type: "text" as const, text: script }] };
  const chatId = `chat ${baseUrl}`;
  const stream = await transport.sendMessages({ chatId, messages: [message], trigger: "submit-message", messageId: undefined, abortSignal: undefined });
  let text = "";
  for (const reader = stream.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) return { text, run };
    if (value.type === "text-delta") text += value.delta;
  }
}

/** The text that an agent sends to Letta's client. */
async function letta({ baseUrl, token }: Server) {
  const client = new Letta({ baseURL: baseUrl, apiKey: token, project: "p", defaultHeaders: { "X-Letta-Source": "page" } });
  const agent = await client.agents.create({ name: "Ada", model: "fake" });
  let text = "";
  const stream = await client.agents.messages.create(agent.id, { input: script, streaming: true, stream_tokens: true });
  for await (const message of stream) {
    if (message.message_type === "assistant_message") text += message.content;
  }
  const missing = await client.agents.retrieve("agent-01900000-0000-7000-8000-000000000000").catch((error) => error.status);
  return { text, missing };
}

/** Every event of an agent, by an `EventSource` with a ticket. */
async function eventSource({ baseUrl, token }: Server) {
  const client = new TokenrailClient({ baseUrl, token });
  const agent = await client.launch({ type: "fake", prompt: script });
  const path = `/api/agents/${agent.id}/events`;
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  const made = await fetch(`${baseUrl}/api/tickets`, { method: "POST", headers, body: JSON.stringify({ path }) });
  const { ticket } = await made.json();
  const heard: number[] = [];
  const source = new EventSource(`${baseUrl}${path}?unnamed=true&ticket=${ticket}`);
  await new Promise<void>((done, fail) => {
    source.onerror = () => fail(new Error(`lost after ${heard.length}`));
    source.onmessage = ({ data }) => {
      const event = JSON.parse(data);
      heard.push(event.sequenceNumber);
      if (event.metadata.eventType === "result") done();
    };
  });
  source.close();
  return heard;
}

/** What a page of an unlisted origin gets from a server: a status, or the browser's refusal. */
async function unlisted({ baseUrl, token }: Server) {
  const headers = { Authorization: `Bearer ${token}` };
  const read = await fetch(`${baseUrl}/api/agents`, { headers }).then((answer) => answer.status, () => "kept from it");
  const simple = await fetch(`${baseUrl}/healthz`).then((answer) => answer.status, () => "kept from it");
  return { read, simple };
}

Object.assign(window, { page: { ours, refusal, aiSdk, letta, eventSource, unlisted } });
