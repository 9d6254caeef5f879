// The client against the real server: run where TOKENRAIL_TEST_SERVER names its binary.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import type { AgentEvent } from "../src/frames.js";
import { type Agent, type Client, applyEvents, createClient, emptyTranscript, messagesOf, textOf } from "../src/index.js";
import { RealServer, hasServer } from "./real-server.js";

/** A word that gives the same faults again. */
const seed = Number(process.env["TOKENRAIL_TEST_SEED"] ?? Date.now() % 1_000_000);

let server: RealServer;
let client: Client;

/** Sockets that can be cut, as a network does it: without a word. */
const sockets = new Set<WebSocket>();
class CutSocket extends WebSocket {
  constructor(address: string) {
    super(address);
    sockets.add(this);
    this.on("close", () => sockets.delete(this));
  }
}

/** Numbers that depend on the seed alone. */
function dice(from: number): () => number {
  let state = from + 1;
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return state / 0x7fffffff;
  };
}

/** As the server tells them one by one: with raw lines nothing is packed. */
async function everyEvent(id: string): Promise<AgentEvent[]> {
  const events: AgentEvent[] = [];
  for (let since = 0; ; ) {
    const page = await client.events(id, { since, limit: 40, raw: true });
    for (const { raw: _, ...event } of page.messages) events.push(event);
    since = page.upTo;
    if (since >= page.head) return events;
  }
}

function demo(): Promise<Agent> {
  return client.launch({ type: "demo", prompt: "Show me what Tokenrail does." });
}

describe.skipIf(!hasServer)("with a real server", () => {
  beforeAll(async () => {
    server = await RealServer.start();
    client = createClient({ baseUrl: server.url, token: server.token, WebSocket: CutSocket, backoff: { firstMs: 20, maxMs: 200 } });
  });
  afterAll(async () => {
    client.close();
    await server.remove();
  });

  it(`follows a demo through cut connections (seed ${seed})`, async () => {
    const random = dice(seed);
    const agent = await demo();
    const seen: AgentEvent[] = [];
    let cuts = 0;
    for await (const event of client.follow(agent.id, { untilEnded: true })) {
      seen.push(event);
      if (random() > 0.1) continue;
      cuts += 1;
      for (const socket of sockets) socket.terminate();
    }
    expect(cuts).toBeGreaterThan(0);
    const kept = await everyEvent(agent.id);
    expect(seen).toEqual(kept);
    const messages = await client.messages(agent.id);
    expect(applyEvents(emptyTranscript, messages).items).toEqual(applyEvents(emptyTranscript, kept).items);
    expect(messagesOf(applyEvents(emptyTranscript, seen)).map(textOf).at(-2)).toMatch(/^All done\./);
  });

  it("follows a demo while the server is killed and comes back", async () => {
    const agent = await demo();
    const seen: AgentEvent[] = [];
    let again: Promise<void> | undefined;
    for await (const event of client.follow(agent.id, { untilEnded: true })) {
      seen.push(event);
      if (seen.length === 20) again = server.kill().then(() => server.restart());
    }
    await again;
    expect(seen).toEqual(await everyEvent(agent.id));
    expect(seen.at(-1)?.metadata.eventType).toBe("result");
  });

  it("has an answer for every call", async () => {
    const stop = new AbortController();
    const news: string[] = [];
    const watching = (async () => {
      for await (const each of client.watch({ signal: stop.signal })) {
        news.push(each.type);
        if (each.type === "deleted") stop.abort();
      }
    })();
    const types = await client.agentTypes();
    expect(types.find((type) => type.type === "demo")).toMatchObject({ available: true });
    const agent = await client.launch({ type: "demo", prompt: "again", metadata: { of: "a test" } }, { idempotencyKey: "once" });
    expect((await client.launch({ type: "demo", prompt: "again", metadata: { of: "a test" } }, { idempotencyKey: "once" })).id).toBe(agent.id);
    expect(await client.send(agent.id, "and then?")).toMatchObject({ turn: 2 });
    expect(await client.cancel(agent.id)).toEqual({ agentId: agent.id });
    for await (const _ of client.follow(agent.id, { untilEnded: true }));
    expect(await client.status(agent.id)).toMatchObject({ agentId: agent.id });
    expect((await client.agent(agent.id)).metadata).toEqual({ of: "a test" });
    expect((await client.turns(agent.id)).map((turn) => turn.number)).toEqual([1, 2]);
    expect(await client.turn(agent.id, 1)).toMatchObject({ number: 1, agentType: "demo", messages: expect.any(Array), aiSDKChunks: expect.any(Array) });
    const file = await client.exportAgent(agent.id);
    const copy = await client.importAgent(file);
    expect(copy).toMatchObject({ readOnly: true });
    await expect(client.send(copy.id, { content: "hello?" })).rejects.toMatchObject({ code: "agent_read_only", status: 409 });
    expect(await client.replay(agent.id, { speed: 0 })).toMatchObject({ replayOf: agent.id });
    expect((await client.events(agent.id, { limit: 1, raw: true })).messages).toHaveLength(1);
    const listed: string[] = [];
    for await (const each of client.eachAgent({ limit: 2 })) listed.push(each.id);
    expect(listed).toContain(agent.id);
    await client.remove(copy.id, { purge: true });
    await expect(client.agent(copy.id)).rejects.toMatchObject({ code: "not_found", status: 404 });
    await expect(client.launch({ prompt: " " })).rejects.toMatchObject({ code: "validation_failed", problem: { errors: expect.any(Array) } });
    await watching;
    expect(news).toEqual(expect.arrayContaining(["reset", "created", "updated", "deleted"]));
  });
});
