import { applyEvents, emptyTranscript } from "@tokenrail/client";
import { TokenrailProvider } from "@tokenrail/client/react";
import { act, render, screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";

import { AgentId } from "../src/conversation/agent-id.ts";
import { KeepOpen } from "../src/conversation/kept.tsx";
import { Painted } from "../src/conversation/painted.ts";
import { rowsOf } from "../src/conversation/rows.ts";
import { RowView } from "../src/conversation/RowView.tsx";
import { timeOf } from "../src/ui/format.ts";
import { Told } from "./events.ts";
import { FakeClient } from "./fake-client.ts";

function told(length: number): Told {
  const told = new Told(1_000).prompt("go");
  for (let number = 0; number < length; number++) told.text("m", `${number} `);
  return told.message("m", "0 1 2");
}

async function show(all: Told, agentId: string) {
  const [first] = all.events.slice(1);
  const stored = all.events.at(-1);
  if (!first || !stored) throw new Error("no message");
  const events = vi.fn((_id: string, _query: object) => Promise.resolve({ messages: [first] }));
  const fake = Object.assign(new FakeClient(), { events });
  // As after a reload: without the deltas.
  const { items } = applyEvents(emptyTranscript, [{ ...stored, firstSequence: 2 }]);
  await act(async () => {
    render(
      <TokenrailProvider client={fake.client}>
        <AgentId value={agentId}>
          <KeepOpen>
            <Painted value={true}>
              {rowsOf(items).map((row) => (
                <RowView key={row.key} row={row} plain={false} />
              ))}
            </Painted>
          </KeepOpen>
        </AgentId>
      </TokenrailProvider>,
    );
  });
  return { first, stored, events, shown: screen.getByTestId("row-text").querySelector("time")?.textContent };
}

test("after a reload, a long message has the time of its beginning", async () => {
  const { first, events, shown } = await show(told(100), "long");
  expect(shown).toBe(timeOf(first.createdAt));
  expect(events.mock.calls.map(([id, query]) => [id, query])).toEqual([["long", expect.objectContaining({ since: 1, limit: 1 })]]);
});

test("a short message asks the server for nothing", async () => {
  const { stored, events, shown } = await show(told(5), "short");
  expect([shown, events.mock.calls.length]).toEqual([timeOf(stored.createdAt), 0]);
});
