// Whatever a network does with the frames, whoever follows sees the journal; and however a journal is read, in one
// piece or many, folded or dense, it comes to the same messages.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AgentEvent, PlainFrame } from "../src/frames.js";
import { Conversation, TokenrailClient } from "../src/index.js";
import { type Item, type Transcript, advance, applyEvents, emptyTranscript, messagesOf, reduceMessages } from "../src/transcript/index.js";
import { FakeServer } from "./fake-server.js";
import { Journal, folded } from "./journal.js";
import { journalOf, steps } from "./stories.js";

const RUNS = Number(process.env["TOKENRAIL_TEST_RUNS"] ?? 200);

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
        for (const event of events) all.push(reduceMessages(all.at(-1) as Transcript, event));
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
          transcript = reduceMessages(transcript, event);
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

/**
 * For each frame, one after the other, the places that it takes among those that are sent together: none, and it is lost;
 * two, and it comes twice. So any order, with any frames lost or doubled.
 */
const places = fc.array(fc.array(fc.nat(99), { maxLength: 2 }), { maxLength: 120 });

/** Makes that of them; those for which nothing is said keep their place. */
function tangle(said: readonly (readonly number[])[]): <T>(frames: readonly T[]) => T[] {
  const left = [...said];
  return (frames) => {
    const placed = frames.flatMap((frame, own) => (left.shift() ?? [own]).map((place) => ({ frame, place })));
    return placed.toSorted((one, two) => one.place - two.place).map(({ frame }) => frame);
  };
}

describe("the rule of the protocol", () => {
  it("comes to the same messages, whatever is made of the frames", () => {
    const property = fc.property(steps, places, (story, said) => {
      const { events } = journalOf(story);
      let transcript = emptyTranscript;
      let head = 0;
      /** A page of messages, as the server has it by then. */
      const page = () => advance(applyEvents(transcript, folded(events.slice(0, head))), head);
      for (const event of tangle(said)(events)) {
        head = Math.max(head, event.sequenceNumber);
        transcript = event.sequenceNumber > transcript.last + 1 ? page() : reduceMessages(transcript, event);
      }
      head = events.length;
      transcript = page();
      expect(transcript.last).toBe(events.length);
      expect(messagesOf(transcript)).toEqual(messagesOf(read(events)));
    });
    fc.assert(property, { numRuns: RUNS });
  });
});

const soon = () => new Promise((resolve) => setTimeout(resolve, 0));

/** What two followers and a conversation come to while the network makes this of a journal, told in bursts. */
async function follow(source: readonly AgentEvent[], burst: number, knowsPacked: boolean, network: (server: FakeServer) => (frames: PlainFrame[]) => PlainFrame[]) {
  const server = new FakeServer();
  server.pageSize = 3;
  server.knowsPacked = knowsPacked;
  const journal = new Journal();
  server.host(journal);
  const client = new TokenrailClient(server.options());
  const conversation = new Conversation(client, journal.agentId);
  conversation.start();
  const seen: AgentEvent[][] = [[], []];
  const reading = seen.map(async (events) => {
    for await (const event of client.follow(journal.agentId)) events.push(event);
  });
  while ([...server.sockets].every((socket) => socket.followed.size === 0)) await soon();
  server.network = network(server);
  for (let at = 0; at < source.length; at += burst) {
    journal.events.push(...source.slice(at, at + burst));
    server.announce(journal, Math.min(burst, source.length - at));
    await Promise.resolve();
  }
  const isAll = () => seen.every((events) => events.length >= source.length) && conversation.snapshot().transcript.last >= source.length;
  for (let beat = 0; beat < 500 && !isAll(); beat += 1) {
    await soon();
    server.heartbeat();
  }
  conversation.stop();
  client.close();
  await Promise.all(reading);
  return { seen, shown: messagesOf(conversation.snapshot().transcript) };
}

describe("a follower", () => {
  const bursts = fc.oneof(fc.integer({ min: 1, max: 7 }), fc.constant(1_000));

  it("sees the journal, whatever is lost, doubled, cut off, or out of order", async () => {
    const property = fc.asyncProperty(steps, faults, bursts, fc.boolean(), async (story, kinds, burst, packs) => {
      const { events } = journalOf(story);
      const { seen, shown } = await follow(events, burst, packs, (server) => faulty(server, kinds));
      expect(seen).toEqual([events, events]);
      expect(shown).toEqual(messagesOf(read(events)));
    });
    await fc.assert(property, { numRuns: RUNS });
  });

  it("sees the journal, in whatever order all the frames of a story come, and however often", async () => {
    const property = fc.asyncProperty(steps, places, bursts, fc.boolean(), async (story, said, burst, packs) => {
      const { events } = journalOf(story);
      const { seen, shown } = await follow(events, burst, packs, () => tangle(said));
      expect(seen).toEqual([events, events]);
      expect(shown).toEqual(messagesOf(read(events)));
    });
    await fc.assert(property, { numRuns: RUNS });
  });
});
