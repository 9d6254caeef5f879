// Packed deltas are the events that the server would have told one by one.
import { describe, expect, it } from "vitest";
import { eventId, unpacked, unpackedPage } from "../src/deltas.js";
import type { AgentEvent } from "../src/frames.js";
import { FakeServer } from "./fake-server.js";
import { createClient } from "../src/index.js";
import { Journal, packed } from "./journal.js";

const AGENT_ID = "01a20028-bec1-7101-8101-010101010101";
const MESSAGE_ID = "01a20028-bec1-77fe-abe7-7f4dfe98786d";

/** As the server's own tests have them: one by one, and in a packed frame. */
const SAID = [
  ["01a20028-c2bd-73d6-9fac-191828197a59", "Hel", "2026-11-21T22:10:01.021Z"],
  ["01a20028-c2c4-7df0-8b7b-0bed5b674395", "lo", "2026-11-21T22:10:01.028Z"],
  ["01a20028-c2cb-7e00-85e3-2b0913fcfdda", " 🦀", "2026-11-21T22:10:01.035Z"],
] as const;
const EVENTS = SAID.map(
  ([id, content, createdAt], index): AgentEvent => ({
    id,
    agentId: AGENT_ID,
    sequenceNumber: index + 3,
    type: "assistant",
    role: "assistant",
    content,
    metadata: { eventType: "content_delta", messageId: MESSAGE_ID, part: 0 },
    createdAt,
  }),
);
const DELTAS = {
  agentId: AGENT_ID,
  messageId: MESSAGE_ID,
  part: 0,
  eventType: "content_delta" as const,
  from: 3,
  to: 5,
  createdAt: "2026-11-21T22:10:01.021Z",
  elapsedMs: [0, 7, 7],
  texts: ["Hel", "lo", " 🦀"],
};

describe("packed deltas", () => {
  it("are the same events, with the ids that the server gives", () => {
    expect(unpacked(DELTAS)).toEqual(EVENTS);
    expect(JSON.parse(JSON.stringify(unpacked(DELTAS)))).toEqual(EVENTS);
    expect(eventId(AGENT_ID, Date.parse("2026-11-21T22:10:01.014Z"), 2)).toBe("01a20028-c2b6-7b3d-a51b-94adbc1ea600");
  });

  it("have the time of the first where no other is told", () => {
    const { elapsedMs: _, ...same } = DELTAS;
    expect(new Set(unpacked(same).map(({ createdAt }) => createdAt))).toEqual(new Set([DELTAS.createdAt]));
  });

  it("name a tool on the first piece of its input alone", () => {
    const [first, second] = unpacked({ ...DELTAS, eventType: "tool_input_delta", toolCallId: "c", toolName: "Bash" });
    expect(first?.metadata).toMatchObject({ toolCallId: "c", toolName: "Bash" });
    expect(second?.metadata).toEqual({ eventType: "tool_input_delta", messageId: MESSAGE_ID, part: 0, toolCallId: "c" });
  });
});

function journal(): Journal {
  const told = new Journal();
  told.user("hi");
  const message = told.message();
  for (const word of ["a", "b", "c"]) told.say(message, word);
  told.call(message, "Bash", { command: "ls" });
  told.complete(message);
  told.end();
  return told;
}

describe.each([true, false])("a server that knows of packed deltas: %s", (knowsPacked) => {
  const server = new FakeServer();
  server.knowsPacked = knowsPacked;
  const { events, agentId } = journal();
  const told = new Journal();
  told.events.push(...events);
  server.host(told, "completed");

  it("gives every event to who follows, also from within a packed frame", async () => {
    expect(unpackedPage(packed(events))).toEqual(events);
    for (const since of [0, 1, 3]) {
      const client = createClient(server.options());
      const seen: AgentEvent[] = [];
      for await (const event of client.follow(agentId, { since, untilEnded: true })) seen.push(event);
      expect(seen).toEqual(events.slice(since));
      client.close();
    }
  });

  it("gives every event in pages", async () => {
    const client = createClient(server.options());
    expect((await client.events(agentId, { since: 2 })).messages).toEqual(events.slice(2));
  });
});
