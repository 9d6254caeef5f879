// Whatever a network does with the frames, whoever follows sees the journal; and however a journal is read, in one
// piece or many, folded or dense, it comes to the same messages.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AgentEvent, PlainFrame } from "../src/frames.js";
import { createClient } from "../src/index.js";
import { type Item, type Transcript, applyEvent, applyEvents, emptyTranscript, messagesOf } from "../src/transcript/index.js";
import { FakeServer } from "./fake-server.js";
import { Journal, type OpenMessage, folded } from "./journal.js";

const RUNS = Number(process.env["TOKENRAIL_TEST_RUNS"] ?? 200);

const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant("say" as const), on: fc.nat(3), text: fc.string({ maxLength: 6, minLength: 1 }), thinks: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("call" as const), on: fc.nat(3), streamed: fc.boolean(), told: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("answer" as const), on: fc.nat(5), fails: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("complete" as const), on: fc.nat(3), under: fc.option(fc.nat(5)) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("abandon" as const), on: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("user" as const, "notice" as const, "error" as const, "end" as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
const steps = fc.array(step, { maxLength: 60 });

/** A journal as the steps say: up to four messages are open at a time, and a step that makes no sense is left out. */
function journalOf(story: readonly Step[]): Journal {
  const journal = new Journal();
  const open: OpenMessage[] = [];
  // Results, and what sub-agents say, come after a call was told or its message is complete.
  const calls: string[] = [];
  const inMessage = new Map<OpenMessage, string[]>();
  const openOne = (at: number) => (open[at] ??= journal.message());
  for (const each of story) {
    switch (each.do) {
      case "say":
        journal.say(openOne(Math.min(each.on, open.length)), each.text, each.thinks ? "reasoning" : "text");
        break;
      case "call": {
        const message = openOne(Math.min(each.on, open.length));
        const call = journal.call(message, "Tool", { of: calls.length }, each);
        if (each.told) calls.push(call);
        else inMessage.set(message, [...(inMessage.get(message) ?? []), call]);
        break;
      }
      case "answer": {
        const call = calls[each.on];
        if (call !== undefined) journal.result(call, "result", each.fails);
        break;
      }
      case "complete": {
        const [message] = open.splice(each.on, 1);
        if (!message) break;
        const parent = each.under === null ? undefined : calls[each.under];
        journal.complete(message, { parent });
        calls.push(...(inMessage.get(message) ?? []));
        break;
      }
      case "abandon": {
        const [message] = open.splice(each.on, 1);
        if (message) journal.abandon(message);
        break;
      }
      case "user":
        journal.user("next");
        break;
      case "notice":
        journal.notice("status");
        break;
      case "error":
        journal.error("overloaded");
        break;
      case "end":
        journal.end();
    }
  }
  for (const message of open) journal.complete(message);
  return journal;
}

const read = (events: readonly AgentEvent[]) => applyEvents(emptyTranscript, events);

/** Every item, those of sub-agents too. */
function everything(items: readonly Item[]): Item[] {
  return items.flatMap((item) => {
    const calls = item.kind === "tool" ? [item.call] : item.kind === "assistant" ? item.parts.flatMap((part) => (part.type === "tool" ? [part.call] : [])) : [];
    return [item, ...calls.flatMap((call) => everything(call.children))];
  });
}

describe("a journal", () => {
  it("comes to the same in one piece, event by event, and from any point", () => {
    fc.assert(
      fc.property(steps, fc.nat(), (story, cut) => {
        const { events } = journalOf(story);
        const whole = read(events);
        const all = [emptyTranscript];
        for (const event of events) all.push(applyEvent(all.at(-1) as Transcript, event));
        expect(all.at(-1)).toEqual(whole);
        const at = all[cut % all.length] as Transcript;
        expect(applyEvents(at, events)).toEqual(whole);
      }),
      { numRuns: RUNS },
    );
  });

  it("comes to the same folded, whole or from any cursor", () => {
    fc.assert(
      fc.property(steps, fc.nat(), (story, cut) => {
        const { events } = journalOf(story);
        const whole = read(events);
        expect(read(folded(events)).items).toEqual(whole.items);
        const dense = events.slice(0, cut % (events.length + 1));
        expect(applyEvents(read(dense), folded(events)).items).toEqual(whole.items);
      }),
      { numRuns: RUNS },
    );
  });

  it("has each message once, in order, and none that was thrown away", () => {
    fc.assert(
      fc.property(steps, (story) => {
        const { events } = journalOf(story);
        const items = everything(read(events).items);
        const complete = events.filter((event) => event.metadata.eventType === "message").map((event) => event.id);
        const shown = items.filter((item) => item.kind === "assistant").map((item) => item.id);
        expect(shown.toSorted()).toEqual(complete.toSorted());
        const numbers = read(events).items.map((item) => item.sequence);
        expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
        expect(new Set(items.map((item) => item.sequence)).size).toBe(items.length);
      }),
      { numRuns: RUNS },
    );
  });

  it("changes no object that was given before", () => {
    fc.assert(
      fc.property(steps, (story) => {
        const { events } = journalOf(story);
        let transcript = emptyTranscript;
        const given: [Transcript, string][] = [];
        for (const event of events) {
          transcript = applyEvent(transcript, event);
          given.push([transcript, JSON.stringify(transcript)]);
        }
        for (const [before, text] of given) expect(JSON.stringify(before)).toBe(text);
      }),
      { numRuns: RUNS },
    );
  });
});

type Fault = "none" | "lose" | "twice" | "swap" | "all" | "cut";
const faults = fc.array(fc.constantFrom<Fault>("none", "none", "lose", "twice", "swap", "all", "cut"), { minLength: 1, maxLength: 30 });

/** A network with these faults, in turn, for each frame; each after the other is over it is a good one. */
function faulty(server: FakeServer, kinds: readonly Fault[]): (frames: PlainFrame[]) => PlainFrame[] {
  const left = [...kinds];
  return (frames) => {
    const out: PlainFrame[] = [];
    for (const frame of frames) {
      const fault = left.shift() ?? "none";
      if (fault === "all") return out.toReversed();
      if (fault === "cut") queueMicrotask(() => server.drop());
      if (fault === "lose" || fault === "cut") continue;
      out.push(frame);
      if (fault === "twice") out.push(frame);
      if (fault === "swap") out.reverse();
    }
    return out;
  };
}

describe("a follower", () => {
  it("sees the journal, whatever is lost, doubled, cut off, or out of order", async () => {
    const property = fc.asyncProperty(steps, faults, fc.integer({ min: 1, max: 7 }), async (story, kinds, burst) => {
      const server = new FakeServer();
      server.pageSize = 3;
      server.network = faulty(server, kinds);
      const source = journalOf(story);
      const journal = new Journal();
      server.host(journal);
      const client = createClient(server.options());
      const seen: AgentEvent[] = [];
      const late: AgentEvent[] = [];
      const reading = [client.follow(journal.agentId), client.follow(journal.agentId)].map(async (events, at) => {
        for await (const event of events) (at === 0 ? seen : late).push(event);
      });
      for (let at = 0; at < source.events.length; at += burst) {
        journal.events.push(...source.events.slice(at, at + burst));
        server.announce(journal, Math.min(burst, source.events.length - at));
        await Promise.resolve();
      }
      const isAll = () => seen.length >= source.events.length && late.length >= source.events.length;
      for (let beat = 0; beat < 500 && !isAll(); beat += 1) {
        await new Promise((resolve) => setTimeout(resolve, 0));
        server.heartbeat();
      }
      client.close();
      await Promise.all(reading);
      expect(seen).toEqual(source.events);
      expect(late).toEqual(source.events);
      expect(messagesOf(read(seen))).toEqual(messagesOf(read(source.events)));
    });
    await fc.assert(property, { numRuns: RUNS });
  });
});
