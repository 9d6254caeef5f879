// What goes wrong while somebody waits: whoever waits hears of it, or goes on when it is over.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { AgentList } from "../src/agents.js";
import type { AgentEvent } from "../src/frames.js";
import { type Client, type ClientOptions, Conversation, TokenrailClient, messagesOf } from "../src/index.js";
import { FakeServer, problem } from "./fake-server.js";
import { Journal } from "./journal.js";

const DONE = { done: true, value: undefined };

let server: FakeServer;
let client: Client;
let journal: Journal;

function connect(more: ClientOptions = {}): Client {
  client = new TokenrailClient({ ...server.options(), ...more });
  return client;
}

const number = async (event: Promise<IteratorResult<AgentEvent, undefined>>) => (await event).value?.sequenceNumber;
const asked = (request: string) => server.requests.filter((each) => each === request).length;

function endAgent(): void {
  journal.end();
  const hosted = server.agents.get(journal.agentId);
  if (hosted) hosted.status = "completed";
}

beforeEach(() => {
  server = new FakeServer();
  journal = new Journal();
  journal.user("hi");
  server.host(journal);
});
afterEach(() => {
  client.close();
  vi.useRealTimers();
});

describe("follow until the agent has ended", () => {
  const agent = () => `GET /api/agents/${journal.agentId}`;

  it("asks again where it cannot be asked whether it has", async () => {
    vi.useFakeTimers();
    endAgent();
    let refusals = 0;
    server.refuse = (request) => {
      if (request !== agent()) return undefined;
      refusals += 1;
      if (refusals === 1) throw new TypeError("fetch failed");
      return refusals < 4 ? problem(503, "store_busy") : undefined;
    };
    const events = connect().follow(journal.agentId, { untilEnded: true });
    expect([await number(events.next()), await number(events.next())]).toEqual([1, 2]);
    const end = events.next();
    await vi.advanceTimersByTimeAsync(20_000);
    expect(await end).toEqual(DONE);
    expect(refusals).toBe(4);
  });

  it.each([
    [401, "unauthenticated"],
    [404, "not_found"],
  ] as const)("ends with an error where the answer is %s", async (status, code) => {
    endAgent();
    server.refuse = (request) => (request === agent() ? problem(status, code) : undefined);
    const events = connect().follow(journal.agentId, { untilEnded: true });
    await events.next();
    expect(await number(events.next())).toBe(2);
    await expect(events.next()).rejects.toMatchObject({ code, status });
    expect(await events.next()).toEqual(DONE);
    expect(asked(agent())).toBe(1);
  });

  it("asks no more when it is left", async () => {
    vi.useFakeTimers();
    endAgent();
    server.refuse = (request) => (request === agent() ? problem(503, "store_busy") : undefined);
    const events = connect().follow(journal.agentId, { untilEnded: true });
    await events.next();
    await events.next();
    await events.return?.();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(asked(agent())).toBe(1);
  });

  it("waits for what comes after the result of an agent that has ended", async () => {
    endAgent();
    journal.notice("status");
    const events = connect().follow(journal.agentId, { untilEnded: true });
    const numbers = [];
    for await (const event of events) numbers.push(event.sequenceNumber);
    expect(numbers).toEqual([1, 2, 3]);
  });
});

describe("a connection that is given up", () => {
  it("ends the news with an error, after what was told", async () => {
    const news = connect({ token: "wrong" }).watch();
    await expect(news.next()).rejects.toMatchObject({ code: "unauthenticated", status: 401 });
    expect(await news.next()).toEqual(DONE);
    client.close();
    const later = connect().watch();
    await later.next();
    server.news({ type: "error", payload: { code: "news_lagged", message: "", retryable: true }, timestamp: 0 });
    await Promise.resolve();
    server.drop(4509);
    expect(await later.next()).toEqual({ done: false, value: { type: "reset" } });
    await expect(later.next()).rejects.toMatchObject({ code: "protocol" });
  });

  it("still says why when nobody needs it any more", async () => {
    vi.useFakeTimers();
    connect({ token: "wrong" });
    await expect(client.follow(journal.agentId).next()).rejects.toMatchObject({ code: "unauthenticated" });
    await vi.advanceTimersByTimeAsync(5_000);
    expect(client.connection.snapshot()).toMatchObject({ state: "closed", error: { code: "unauthenticated" } });
    await expect(client.watch().next()).rejects.toMatchObject({ code: "unauthenticated" });
    await vi.advanceTimersByTimeAsync(5_000);
    expect(client.connection.error).toMatchObject({ code: "unauthenticated" });
  });

  it("is made again where it is needed by who hears that it is closed", async () => {
    const tokens = ["wrong", "secret"];
    connect({ token: () => tokens.shift() ?? "secret" });
    let again: Promise<IteratorResult<AgentEvent, undefined>> | undefined;
    client.connection.subscribe(() => {
      if (client.connection.state === "closed") again ??= client.follow(journal.agentId).next();
    });
    await expect(client.follow(journal.agentId).next()).rejects.toMatchObject({ code: "unauthenticated" });
    expect(await number(again ?? client.follow(journal.agentId).next())).toBe(1);
  });

  it("is told by a list of agents, which is heard again when it is read again", async () => {
    const list = new AgentList(connect());
    list.start();
    await vi.waitFor(() => expect(client.connection.state).toBe("open"));
    await vi.waitFor(() => expect(list.snapshot().agents).toHaveLength(1));
    server.drop(4509);
    await vi.waitFor(() => expect(list.snapshot().error).toMatchObject({ code: "protocol" }));
    list.refetch();
    await vi.waitFor(() => expect(client.connection.state).toBe("open"));
    await vi.waitFor(() => expect(list.snapshot().error).toBeUndefined());
    server.news({ type: "agent:deleted", payload: { agentId: journal.agentId, timestamp: "" }, timestamp: 0 });
    await vi.waitFor(() => expect(list.snapshot().agents).toEqual([]));
    list.stop();
  });
});

describe("a conversation", () => {
  it("is told that the connection was given up, and goes on when it is read again", async () => {
    const conversation = new Conversation(connect(), journal.agentId);
    conversation.start();
    await vi.waitFor(() => expect(server.sockets.size).toBe(1));
    server.drop(4509);
    await vi.waitFor(() => expect(conversation.snapshot().error).toMatchObject({ code: "protocol" }));
    conversation.refetch();
    await vi.waitFor(() => expect(conversation.snapshot()).toMatchObject({ loading: false, error: undefined }));
    expect(messagesOf(conversation.snapshot().transcript)).toHaveLength(1);
    conversation.stop();
  });
});

describe("a page of events that does not come", () => {
  /** A follower that has missed something, and whose first page stalls. */
  async function stalled() {
    for (let count = 0; count < 9; count += 1) journal.notice("status");
    connect();
    const first = client.follow(journal.agentId);
    for (let count = 0; count < 10; count += 1) await first.next();
    let pages = 0;
    server.refuse = (request) => {
      if (!request.endsWith("/events")) return undefined;
      pages += 1;
      return pages === 1 ? new Response(new ReadableStream(), { headers: { "Content-Type": "application/json" } }) : undefined;
    };
    const late = client.follow(journal.agentId);
    const numbers: number[] = [];
    void (async () => {
      for await (const event of late) numbers.push(event.sequenceNumber);
    })();
    await vi.waitFor(() => expect(pages).toBe(1));
    return { numbers, pages: () => pages };
  }
  const all = (last: number) => Array.from({ length: last }, (_, at) => at + 1);

  it("is asked for again after a while", async () => {
    vi.useFakeTimers();
    const { numbers, pages } = await stalled();
    journal.notice("status");
    server.announce(journal);
    await vi.advanceTimersByTimeAsync(25_000);
    expect(numbers).toEqual([]);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(numbers).toEqual(all(11));
    expect(pages()).toBe(2);
  });

  it("is asked for again when the connection is made again", async () => {
    const { numbers, pages } = await stalled();
    journal.notice("status");
    server.drop();
    await vi.waitFor(() => expect(numbers).toEqual(all(11)));
    expect(pages()).toBe(2);
  });
});

describe("several questions at once", () => {
  it("are answered in their order by a follower", async () => {
    const events = connect().follow(journal.agentId);
    const numbers = Promise.all([1, 2, 3].map(() => number(events.next())));
    await vi.waitFor(() => expect(client.connection.state).toBe("open"));
    journal.notice("status");
    journal.notice("status");
    server.announce(journal, 2);
    expect(await numbers).toEqual([1, 2, 3]);
    const rest = [events.next(), events.next()];
    await events.return?.();
    expect(await Promise.all(rest)).toEqual([DONE, DONE]);
  });

  it("are answered in their order by the news", async () => {
    const news = connect().watch();
    const types = Promise.all([1, 2].map(async () => (await news.next()).value?.type));
    await vi.waitFor(() => expect(client.connection.state).toBe("open"));
    server.news({ type: "agent:deleted", payload: { agentId: "another", timestamp: "" }, timestamp: 0 });
    expect(await types).toEqual(["reset", "deleted"]);
    const rest = [news.next(), news.next()];
    client.close();
    expect(await Promise.all(rest)).toEqual([DONE, DONE]);
  });

  it("hear of an error once, and then of the end", async () => {
    connect({ token: "wrong" });
    for (const source of [client.follow(journal.agentId), client.watch()]) {
      const [first, second] = [source.next(), source.next()];
      await expect(first).rejects.toMatchObject({ code: "unauthenticated" });
      expect(await second).toEqual(DONE);
      expect(await source.next()).toEqual(DONE);
    }
  });
});
