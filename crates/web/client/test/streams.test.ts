// The client in a runtime without a WebSocket, where it reads event streams.
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type Client, createClient } from "../src/index.js";
import type { AgentEvent } from "../src/frames.js";
import { FakeServer, problem } from "./fake-server.js";
import { Journal, packed, take } from "./journal.js";

/** A stream that a client reads. */
interface Open {
  since: number;
  controller: ReadableStreamDefaultController<Uint8Array>;
}

let server: FakeServer;
let client: Client;
let journal: Journal;
let streams: Open[];
/** How many bytes of a block arrive at a time. */
let pieceBytes = Number.POSITIVE_INFINITY;
/** Nothing is answered. */
let isSilent = false;

function write({ controller }: Open, text: string): void {
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length; at += pieceBytes) controller.enqueue(bytes.slice(at, at + pieceBytes));
}

function tell(stream: Open, events: readonly AgentEvent[]): void {
  for (const item of packed(events)) write(stream, `id: 1\ndata: ${JSON.stringify(item)}\n\n`);
}

async function fetched(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
  const url = new URL(String(input));
  const isStream = new Headers(init.headers).get("Accept") === "text/event-stream";
  if (isSilent) return new Promise((_, fail) => init.signal?.addEventListener("abort", () => fail(init.signal?.reason)));
  if (!isStream || server.isDown) return server.fetch(input, init);
  const since = Number(url.searchParams.get("since"));
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      const stream = { since, controller };
      streams.push(stream);
      write(stream, "retry: 1000\nid: 0\n:\n\n");
      tell(stream, journal.events.slice(since));
    },
  });
  return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
}

beforeEach(() => {
  server = new FakeServer();
  journal = new Journal();
  streams = [];
  isSilent = false;
  pieceBytes = Number.POSITIVE_INFINITY;
  const said = journal.message();
  for (const word of ["Grüße ", "an ", "alle "]) journal.say(said, word);
  server.host(journal);
  const { WebSocket: _, ...options } = server.options();
  vi.stubGlobal("WebSocket", undefined);
  client = createClient({ ...options, fetch: fetched });
});
afterEach(() => {
  client.close();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

it("gives the history and then what comes, each once, in whatever pieces it arrives", async () => {
  pieceBytes = 1;
  const events = client.follow(journal.agentId);
  const first = [];
  for (let count = 0; count < 3; count += 1) first.push((await events.next()).value?.content);
  expect(first.join("")).toBe("Grüße an alle ");
  expect(client.connection.state).toBe("open");
  journal.notice("status");
  tell(streams[0] as Open, journal.events.slice(-1));
  tell(streams[0] as Open, journal.events.slice(-1));
  journal.notice("status");
  tell(streams[0] as Open, journal.events.slice(-1));
  expect(await take(events, 2)).toEqual([4, 5]);
});

it.each([
  ["ends", ({ controller }: Open) => controller.close()],
  ["breaks", ({ controller }: Open) => controller.error(new Error("cut"))],
])("goes on with its cursor if a stream %s", async (_, lose) => {
  const events = client.follow(journal.agentId);
  expect(await take(events, 3)).toEqual([1, 2, 3]);
  const states: string[] = [];
  client.connection.subscribe(() => states.push(client.connection.state));
  journal.notice("status");
  lose(streams[0] as Open);
  expect(await take(events, 1)).toEqual([4]);
  expect(streams.map(({ since }) => since)).toEqual([0, 3]);
  expect(states).toEqual(["waiting", "connecting", "open"]);
});

it("ends when the agent has ended, or is deleted", async () => {
  const deleted = client.follow(journal.agentId);
  expect(await take(deleted, 3)).toEqual([1, 2, 3]);
  const ended = client.follow(journal.agentId, { untilEnded: true });
  expect(await take(ended, 3)).toEqual([1, 2, 3]);
  const hosted = server.agents.get(journal.agentId);
  if (hosted) hosted.status = "completed";
  journal.add("response", "", { eventType: "result", outcome: "completed" });
  tell(streams.at(-1) as Open, journal.events.slice(-1));
  expect(await take(ended, 2)).toEqual([4]);
  expect(await take(deleted, 1)).toEqual([4]);
  server.agents.delete(journal.agentId);
  streams.at(-1)?.controller.close();
  expect(await deleted.next()).toEqual({ done: true, value: undefined });
});

it("fails for an agent that does not exist, and not for another one", async () => {
  const good = client.follow(journal.agentId);
  await expect(client.follow("01900000-0000-7000-8000-00000000000f").next()).rejects.toMatchObject({ code: "not_found" });
  expect(await take(good, 3)).toEqual([1, 2, 3]);
});

it("waits where the server is full", async () => {
  let refusals = 2;
  server.refuse = (request) => {
    const isFull = request === `GET /api/agents/${journal.agentId}` && (refusals -= 1) >= 0;
    return isFull ? problem(503, "capacity_exhausted") : undefined;
  };
  expect(await take(client.follow(journal.agentId), 3)).toEqual([1, 2, 3]);
  expect(refusals).toBeLessThan(0);
});

it("tells its watchers now and then to load the list", async () => {
  vi.useFakeTimers();
  const news = client.watch();
  expect((await news.next()).value).toEqual({ type: "reset" });
  const next = news.next();
  await vi.advanceTimersByTimeAsync(5_000);
  expect((await next).value).toEqual({ type: "reset" });
});

it("notices that the server has gone silent", async () => {
  vi.useFakeTimers();
  const events = client.follow(journal.agentId);
  expect(await take(events, 3)).toEqual([1, 2, 3]);
  server.isDown = true;
  await vi.advanceTimersByTimeAsync(35_000);
  expect(client.connection.state).not.toBe("open");
});

it("is open only after the server has answered", async () => {
  // Without a token, no ticket is asked for either.
  const { token: _, WebSocket: __, ...options } = server.options();
  const open = createClient({ ...options, fetch: fetched });
  server.isDown = true;
  const states: string[] = [];
  open.connection.subscribe(() => states.push(open.connection.state));
  void open.watch().next();
  await vi.waitFor(() => expect(states.filter((state) => state === "waiting").length).toBeGreaterThan(2));
  expect(states).not.toContain("open");
  server.isDown = false;
  // Any answer of the server shows that it is there.
  await vi.waitFor(() => expect(open.connection.state).toBe("open"));
  open.close();
});

it("notices that the server has gone silent, while only the list is watched", async () => {
  vi.useFakeTimers();
  const news = client.watch();
  expect((await news.next()).value).toEqual({ type: "reset" });
  // Requests get no answer, and no error either.
  isSilent = true;
  await vi.advanceTimersByTimeAsync(40_000);
  expect(client.connection.state).not.toBe("open");
});
