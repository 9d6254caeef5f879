import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type Client, type Message, createClient, messagesOf, textOf } from "../src/index.js";
import { Conversation, type ConversationSnapshot } from "../src/conversation.js";
import { FakeServer } from "./fake-server.js";
import { Journal } from "./journal.js";

const LONG = 400;

let server: FakeServer;
let client: Client;
let journal: Journal;
let conversation: Conversation;
/** What was shown, one after the other. */
let shown: ConversationSnapshot[];

function say(words: string): void {
  const said = journal.message();
  journal.say(said, words);
  journal.complete(said);
}

const said = (snapshot: ConversationSnapshot | undefined) => messagesOf(snapshot?.transcript ?? { last: 0, items: [] });
const texts = (messages: readonly Message[]) => messages.map(textOf);
const all = Array.from({ length: LONG }, (_, number) => `message ${number}`);

/** Reads all of it, and gives what was shown before that. */
async function read(): Promise<ConversationSnapshot[]> {
  conversation.start();
  await vi.waitFor(() => expect(conversation.snapshot().loading).toBe(false), { timeout: 10_000 });
  return shown.filter((snapshot) => snapshot.loading && said(snapshot).length > 0);
}

beforeEach(() => {
  server = new FakeServer();
  client = createClient(server.options());
  journal = new Journal();
  server.host(journal);
  for (const text of all) say(text);
  shown = [];
  conversation = new Conversation(client, journal.agentId);
  conversation.subscribe(() => shown.push(conversation.snapshot()));
});
afterEach(() => {
  conversation.stop();
  client.close();
});

it("shows the newest messages of a long history before the rest of it is here", async () => {
  const [first] = await read();
  const newest = said(first);
  expect(newest.length).toBeGreaterThan(20);
  expect(newest.length).toBeLessThan(LONG);
  expect(texts(newest)).toEqual(all.slice(-newest.length));
  expect(texts(said(conversation.snapshot()))).toEqual(all);
  expect(said(conversation.snapshot()).slice(-newest.length)).toEqual(newest);
});

it("reads what is seen first, and the rest when somebody shows it", async () => {
  const asked = () => server.requests.filter((request) => request !== `GET /api/agents/${journal.agentId}`);
  conversation.preload();
  await vi.waitFor(() => expect(said(conversation.snapshot()).length).toBeGreaterThan(20));
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(asked()).toEqual([`GET /api/agents/${journal.agentId}/messages`]);
  expect(conversation.snapshot().loading).toBe(true);
  await read();
  expect(texts(said(conversation.snapshot()))).toEqual(all);
});

it("asks for a short history once", async () => {
  const short = new Journal("01900000-0000-7000-8000-000000000002");
  server.host(short);
  for (const text of ["one", "two"]) {
    const open = short.message();
    short.say(open, text);
    short.complete(open);
  }
  conversation = new Conversation(client, short.agentId);
  await read();
  expect(texts(said(conversation.snapshot()))).toEqual(["one", "two"]);
  expect(server.requests.filter((request) => request.endsWith("/messages"))).toHaveLength(1);
});

it("reads from the beginning where the server does not know what the newest are", async () => {
  server.knowsLast = false;
  server.pageSize = 50;
  await read();
  expect(texts(said(conversation.snapshot()))).toEqual(all);
});

it("shows nothing of a message of which it has the end alone", async () => {
  const open = journal.message();
  for (let word = 0; word < 250; word += 1) journal.say(open, `${word} `);
  const early = await read();
  expect(early.length).toBeGreaterThan(0);
  for (const snapshot of early) expect(texts(said(snapshot))).toEqual(all.slice(-said(snapshot).length));
  const last = said(conversation.snapshot()).at(-1);
  expect(last && textOf(last)).toMatch(/^0 1 2 .* 249 $/);
});

it("waits for the history where the end of it does not fit into a page", async () => {
  server.pageSize = 20;
  expect(await read()).toEqual([]);
  expect(texts(said(conversation.snapshot()))).toEqual(all);
});

it("reads on where a connection was lost while it was reading", async () => {
  server.pageSize = 100;
  let asked = 0;
  server.refuse = (request) => {
    if (!request.endsWith("/messages")) return undefined;
    asked += 1;
    if (asked % 3 === 0) throw new TypeError("fetch failed");
    return undefined;
  };
  await read();
  expect(texts(said(conversation.snapshot()))).toEqual(all);
});

it("begins again after a stop, with what it has", async () => {
  await read();
  conversation.stop();
  say("meanwhile");
  conversation.start();
  await vi.waitFor(() => expect(texts(said(conversation.snapshot()))).toEqual([...all, "meanwhile"]), { timeout: 10_000 });
});
