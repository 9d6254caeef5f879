import { type AgentMessage, applyEvents, emptyTranscript, type Item } from "@tokenrail/client";
import { expect, test } from "vitest";

import { Said } from "../src/conversation/said.ts";
import { turnTime } from "../src/conversation/turn-time.ts";
import { Told } from "./events.ts";

function itemsOf(events: readonly AgentMessage[]): readonly Item[] {
  return applyEvents(emptyTranscript, events).items;
}

test("what comes of the past is nothing that is said now", () => {
  const told = new Told().prompt("go").message("old", "x".repeat(5_000)).text("m", "four");
  const newest = applyEvents(emptyTranscript, told.events.slice(2));
  const said = new Said();
  expect(said.look([])).toBe(0);
  expect(said.look(newest.items)).toBe(0);
  expect(said.look(itemsOf(told.events))).toBe(0);
  told.text("m", "seven77");
  expect(said.look(itemsOf(told.events))).toBe(7);
  told.message("m", "fourseven77").text("n", "two");
  expect(said.look(itemsOf(told.events))).toBe(3);
  expect(said.look(itemsOf(told.events))).toBe(0);
});

test.each([
  ["a call by itself", (told: Told) => told.call("c", "Agent", {})],
  ["a call of a message", (told: Told) => told.message("a", [{ type: "tool_use", id: "c", name: "Agent", input: {} }])],
])("what a sub-agent of %s says is said too", (_, call) => {
  const inner = { parentToolCallId: "c" };
  const told = call(new Told().prompt("go")).message("m", "Looking.", inner);
  const said = new Said();
  let transcript = applyEvents(emptyTranscript, told.events);
  expect(said.look(transcript.items)).toBe(0);
  transcript = applyEvents(transcript, told.message("n", "It is there.", inner).events.slice(-1));
  expect(said.look(transcript.items)).toBe("It is there.".length);
});

test("the time of a turn is its own, however long nobody asked", () => {
  const told = new Told(1_000).prompt("go").text("m", "x").result({ durationMs: 2_345 });
  const day = 86_400_000;
  const began = Date.parse(told.events[0]?.createdAt ?? "");
  expect(turnTime(itemsOf(told.events), began + 1_500)).toBeUndefined();
  expect(turnTime(itemsOf(told.events), undefined)).toBe(2_345);
  expect(turnTime(itemsOf(told.events.slice(0, 2)), began + 1_500)).toBe(1_500);
  const next = { ...told.prompt("again").events[3], createdAt: new Date(began + day).toISOString() } as AgentMessage;
  const items = itemsOf([...told.events.slice(0, 3), next]);
  expect(turnTime(items, began + day + 700)).toBe(700);
  // The newest messages of a long turn: its beginning is on its way.
  expect(turnTime(itemsOf(told.events.slice(1, 2)), began)).toBeUndefined();
});
