import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Client, createClient } from "../src/index.js";
import type { AgentEvent } from "../src/frames.js";
import { FakeServer } from "./fake-server.js";
import { Journal } from "./journal.js";

let server: FakeServer;
let client: Client;

beforeEach(() => {
  server = new FakeServer();
  client = createClient(server.options());
});
afterEach(() => {
  client.close();
  vi.useRealTimers();
});

function hosted(count: number): Journal[] {
  return Array.from({ length: count }, (_, number) => {
    const journal = new Journal(`01900000-0000-7000-8000-${String(number).padStart(12, "0")}`);
    journal.notice("status");
    server.host(journal);
    return journal;
  });
}

async function next(events: AsyncIterator<AgentEvent>): Promise<number | undefined> {
  return (await events.next()).value?.sequenceNumber;
}

const followed = () => [...server.sockets].map((socket) => socket.followed.size);
const opens = () => vi.waitFor(() => expect(client.connection.state).toBe("open"));

describe("more agents than one connection may follow", () => {
  it("are followed over as many connections as it takes", async () => {
    const journals = hosted(300);
    const all = journals.map((journal) => client.follow(journal.agentId));
    expect(await Promise.all(all.map(next))).toEqual(journals.map(() => 1));
    expect(followed()).toEqual([128, 128, 44]);
    for (const journal of journals) {
      journal.notice("status");
      server.announce(journal);
    }
    expect(await Promise.all(all.map(next))).toEqual(journals.map(() => 2));
  });

  it("are so too where the server allows fewer than is known here", async () => {
    server.agentsPerSocket = 3;
    const journals = hosted(10);
    const all = journals.map((journal) => client.follow(journal.agentId));
    expect(await Promise.all(all.map(next))).toEqual(journals.map(() => 1));
    expect(followed().every((count) => count <= 3)).toBe(true);
    expect(followed().reduce((sum, count) => sum + count, 0)).toBe(10);
    server.drop();
    for (const journal of journals) journal.notice("status");
    expect(await Promise.all(all.map(next))).toEqual(journals.map(() => 2));
  });

  it("tell the news once", async () => {
    server.agentsPerSocket = 1;
    const [one, two] = hosted(2) as [Journal, Journal];
    const news = client.watch();
    const told = [news.next()];
    const all = [client.follow(one.agentId), client.follow(two.agentId)];
    await Promise.all(all.map(next));
    expect(server.sockets.size).toBe(2);
    expect((await told[0])?.value).toEqual({ type: "reset" });
    server.news({ type: "agent:updated", payload: { agentId: one.agentId, status: "failed", openQuestions: 0, timestamp: "t" }, timestamp: 0 });
    expect((await news.next()).value).toMatchObject({ type: "updated" });
    server.news({ type: "agent:deleted", payload: { agentId: two.agentId, timestamp: "t" }, timestamp: 0 });
    expect((await news.next()).value).toMatchObject({ type: "deleted" });
    expect(await next(all[1] as AsyncIterator<AgentEvent>)).toBeUndefined();
  });

  it("take the room that others leave, and close what nobody needs", async () => {
    const journals = hosted(130);
    const all = journals.map((journal) => client.follow(journal.agentId));
    await Promise.all(all.map(next));
    expect(server.sockets.size).toBe(2);
    for (const events of all.slice(127)) await events.return?.();
    await vi.waitFor(() => expect(server.sockets.size).toBe(1));
    const again = client.follow((journals[129] as Journal).agentId);
    expect(await next(again)).toBe(1);
    expect(followed()).toEqual([128]);
  });

  it("say how the connection is that is lost", async () => {
    server.agentsPerSocket = 1;
    const journals = hosted(2);
    const all = journals.map((journal) => client.follow(journal.agentId));
    await Promise.all(all.map(next));
    await opens();
    server.isDown = true;
    [...server.sockets][1]?.lose(1006);
    expect(client.connection.snapshot()).toMatchObject({ state: "waiting" });
    server.isDown = false;
    await opens();
    await all[0]?.return?.();
    await vi.waitFor(() => expect(server.sockets.size).toBe(1));
    expect(client.connection.state).toBe("open");
  });
});
