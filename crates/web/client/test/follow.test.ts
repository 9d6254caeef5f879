import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Client, type ClientOptions, type ConnectionState, TokenrailError, createClient } from "../src/index.js";
import { FakeServer, problem } from "./fake-server.js";
import { Journal, take } from "./journal.js";

let server: FakeServer;
let client: Client;

function connect(more: ClientOptions = {}): Client {
  client = createClient({ ...server.options(), ...more });
  return client;
}

function spoken(count: number, agentId?: string): Journal {
  const journal = new Journal(agentId);
  const said = journal.message();
  for (let word = 0; word < count; word += 1) journal.say(said, `${word} `);
  server.host(journal);
  return journal;
}

const upTo = (last: number, first = 1) => Array.from({ length: last - first + 1 }, (_, at) => first + at);
const said = (type: string) => server.heard.filter((frame) => frame.type === type);

beforeEach(() => {
  server = new FakeServer();
});
afterEach(() => {
  client.close();
  vi.useRealTimers();
});

describe("follow", () => {
  it("gives the history and then what comes, each once", async () => {
    const journal = spoken(3);
    const events = connect().follow(journal.agentId);
    expect(await take(events, 3)).toEqual([1, 2, 3]);
    journal.notice("status");
    server.announce(journal);
    server.announce(journal);
    journal.notice("status");
    server.announce(journal);
    expect(await take(events, 2)).toEqual([4, 5]);
  });

  it("goes on from a cursor", async () => {
    const journal = spoken(10);
    expect(await take(connect().follow(journal.agentId, { since: 7 }), 3)).toEqual([8, 9, 10]);
  });

  it("comes back with its cursor and a new ticket", async () => {
    const journal = spoken(5);
    const events = connect().follow(journal.agentId);
    await take(events, 5);
    server.drop();
    journal.notice("status");
    expect(await take(events, 1)).toEqual([6]);
    expect(said("subscribe").map((frame) => "payload" in frame && frame.payload)).toEqual([
      { agentId: journal.agentId, since: 0 },
      { agentId: journal.agentId, since: 5 },
    ]);
    expect(server.requests.filter((request) => request === "POST /api/tickets")).toHaveLength(2);
  });

  it("asks again where frames are lost", async () => {
    const journal = spoken(2);
    const events = connect().follow(journal.agentId);
    await take(events, 2);
    for (let count = 0; count < 3; count += 1) journal.notice("status");
    server.announce(journal, 1);
    expect(await take(events, 3)).toEqual([3, 4, 5]);
  });

  it("notices by a heartbeat what was lost at the end", async () => {
    const journal = spoken(2);
    const events = connect().follow(journal.agentId);
    await take(events, 2);
    journal.notice("status");
    server.heartbeat();
    expect(await take(events, 1)).toEqual([3]);
  });

  it("shares one connection among many, wherever they begin", async () => {
    const [one, two] = [spoken(6), spoken(4, "01900000-0000-7000-8000-000000000002")];
    connect();
    const first = client.follow(one.agentId);
    expect(await take(first, 6)).toEqual(upTo(6));
    const [again, later, other] = [client.follow(one.agentId), client.follow(one.agentId, { since: 4 }), client.follow(two.agentId)];
    expect(await Promise.all([take(again, 6), take(later, 2), take(other, 4)])).toEqual([upTo(6), [5, 6], upTo(4)]);
    one.notice("status");
    server.announce(one);
    expect(await Promise.all([take(first, 1), take(again, 1), take(later, 1)])).toEqual([[7], [7], [7]]);
    expect(server.sockets.size).toBe(1);
  });

  it("reads from pages what a slow reader had no room for", async () => {
    const journal = spoken(10_000);
    const events = connect().follow(journal.agentId);
    await take(events, 1);
    await vi.waitFor(() => expect(said("subscribe")).toHaveLength(1));
    expect(await take(events, 9_999)).toEqual(upTo(10_000, 2));
    expect(server.requests.some((request) => request.endsWith("/events"))).toBe(true);
  });

  it("leaves nothing out when there is room again before all was read", async () => {
    const journal = spoken(1);
    const events = connect().follow(journal.agentId);
    await take(events, 1);
    const said = journal.message();
    for (let word = 0; word < 6_000; word += 1) journal.say(said, "word ");
    server.announce(journal, 6_000);
    expect(await take(events, 100)).toEqual(upTo(101, 2));
    journal.notice("status");
    server.announce(journal);
    expect(await take(events, 5_901)).toEqual(upTo(6_002, 102));
  });

  it("asks once for each gap, and for nothing where there is none", async () => {
    const journal = spoken(5);
    const events = connect().follow(journal.agentId);
    await take(events, 5);
    server.announce(journal, 5);
    journal.notice("status");
    server.announce(journal);
    expect(await take(events, 1)).toEqual([6]);
    server.announce(journal, 6);
    server.heartbeat();
    await Promise.resolve();
    expect(said("subscribe")).toHaveLength(1);
  });

  it("ends quietly when it is aborted, left, or closed", async () => {
    const journal = spoken(1);
    connect();
    const abort = new AbortController();
    const events = client.follow(journal.agentId, { signal: abort.signal });
    await take(events, 1);
    const next = events.next();
    abort.abort();
    expect(await next).toEqual({ done: true, value: undefined });
    for await (const event of client.follow(journal.agentId)) if (event.sequenceNumber === 1) break;
    await vi.waitFor(() => expect(said("unsubscribe")).toHaveLength(2));
    const last = client.follow(journal.agentId, { since: 1 }).next();
    client.close();
    expect((await last).done).toBe(true);
  });

  it("ends with the agent, where that is asked for", async () => {
    const journal = spoken(2);
    const events = connect().follow(journal.agentId, { untilEnded: true });
    await take(events, 2);
    journal.end("first turn");
    server.announce(journal);
    expect(await take(events, 1)).toEqual([3]);
    journal.end("second turn", 2);
    const hosted = server.agents.get(journal.agentId);
    if (hosted) hosted.status = "completed";
    server.announce(journal);
    expect(await take(events, 5)).toEqual([4]);
    expect(await take(client.follow(journal.agentId, { untilEnded: true, since: 4 }), 1)).toEqual([]);
  });

  it("ends when the agent is deleted", async () => {
    const journal = spoken(1);
    const events = connect().follow(journal.agentId);
    await take(events, 1);
    const next = events.next();
    server.news({ type: "agent:deleted", payload: { agentId: journal.agentId, timestamp: "" }, timestamp: 0 });
    expect((await next).done).toBe(true);
  });

  it("tells of an agent that does not exist", async () => {
    await expect(connect().follow("nobody").next()).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("the connection", () => {
  const states = (): ConnectionState[] => {
    const seen: ConnectionState[] = [];
    client.connection.subscribe(() => seen.push(client.connection.state));
    return seen;
  };

  it("says how it is", async () => {
    const journal = spoken(1);
    connect();
    const seen = states();
    const events = client.follow(journal.agentId);
    await take(events, 1);
    server.drop();
    expect(client.connection.snapshot()).toMatchObject({ state: "waiting", retryInMs: expect.any(Number) });
    await vi.waitFor(() => expect(client.connection.state).toBe("open"));
    client.close();
    expect(seen).toEqual(["connecting", "open", "waiting", "connecting", "open", "closed"]);
  });

  it("waits longer and longer for a server that is away, and comes back", async () => {
    vi.useFakeTimers();
    const journal = spoken(1);
    server.isDown = true;
    connect({ backoff: { firstMs: 1_000, maxMs: 8_000, random: () => 1 } });
    const pauses: (number | undefined)[] = [];
    client.connection.subscribe(() => client.connection.state === "waiting" && pauses.push(client.connection.retryInMs));
    const next = client.follow(journal.agentId).next();
    await vi.advanceTimersByTimeAsync(20_000);
    expect(pauses).toEqual([1_000, 2_000, 4_000, 8_000, 8_000]);
    server.isDown = false;
    await vi.advanceTimersByTimeAsync(8_000);
    expect((await next).value?.sequenceNumber).toBe(1);
    server.drop();
    expect(pauses.at(-1)).toBe(1_000);
  });

  it("does not trust one that is silent", async () => {
    vi.useFakeTimers();
    const journal = spoken(1);
    connect();
    const seen = states();
    await client.follow(journal.agentId).next();
    server.network = () => [];
    await vi.advanceTimersByTimeAsync(21_000);
    expect(said("ping")).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(seen.filter((state) => state !== "connecting")).toEqual(["open", "waiting", "open"]);
  });

  it("stays where the server answers after a silence", async () => {
    vi.useFakeTimers();
    const journal = spoken(1);
    connect();
    const seen = states();
    await client.follow(journal.agentId).next();
    await vi.advanceTimersByTimeAsync(120_000);
    expect(said("ping").length).toBeGreaterThan(2);
    expect(seen).toEqual(["connecting", "open"]);
  });

  it("is given up where the token is wrong", async () => {
    const journal = spoken(1);
    connect({ token: "wrong" });
    await expect(client.follow(journal.agentId).next()).rejects.toMatchObject({ code: "unauthenticated", status: 401 });
    expect(client.connection.snapshot()).toMatchObject({ state: "closed", error: { code: "unauthenticated" } });
  });

  it("is given up where the server says not to come again, and only then", async () => {
    const journal = spoken(1);
    const events = connect().follow(journal.agentId);
    await take(events, 1);
    server.drop(4401);
    await vi.waitFor(() => expect(client.connection.state).toBe("open"));
    const next = events.next();
    server.drop(4509);
    await expect(next).rejects.toBeInstanceOf(TokenrailError);
  });

  it("closes when nobody needs it any more", async () => {
    vi.useFakeTimers();
    const journal = spoken(1);
    const events = connect().follow(journal.agentId);
    await events.next();
    await events.return?.();
    expect(client.connection.state).toBe("open");
    await vi.advanceTimersByTimeAsync(1_000);
    expect(client.connection.state).toBe("closed");
  });

  it("waits as long as the server asks", async () => {
    const journal = spoken(1);
    server.refuse = (request) => (request === "POST /api/tickets" ? problem(503, "shutting_down", { "Retry-After": "3" }) : undefined);
    connect();
    void client.follow(journal.agentId).next();
    await vi.waitFor(() => expect(client.connection.snapshot()).toMatchObject({ state: "waiting", retryInMs: 3_000 }));
  });
});

describe("watch", () => {
  it("begins with a reset, and tells what happens", async () => {
    const journal = spoken(1);
    const news = connect().watch();
    expect((await news.next()).value).toEqual({ type: "reset" });
    server.news({ type: "agent:updated", payload: { agentId: journal.agentId, status: "failed", openQuestions: 0, timestamp: "t" }, timestamp: 0 });
    expect((await news.next()).value).toEqual({ type: "updated", agentId: journal.agentId, status: "failed", openQuestions: 0, timestamp: "t" });
    server.news({ type: "error", payload: { code: "news_lagged", message: "", retryable: true }, timestamp: 0 });
    expect((await news.next()).value).toEqual({ type: "reset" });
    server.drop();
    expect((await news.next()).value).toEqual({ type: "reset" });
  });
});
