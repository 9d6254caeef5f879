import { applyEvents, emptyTranscript } from "@tokenrail/client";
import { fireEvent, render, screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";

import { Player } from "../src/replay/player.ts";
import { LiveRate, ratesOf } from "../src/replay/rate.ts";
import { ReplayBar } from "../src/replay/ReplayBar.tsx";
import { breathMs, playedTo, saidAt, timelineOf } from "../src/replay/timing.ts";
import { Told } from "./events.ts";

function at(ms: number, eventType = "content_delta") {
  return { createdAt: new Date(ms).toISOString(), metadata: { eventType } };
}

test("the line of time has the pauses of the events, but not those between turns", () => {
  const timeline = timelineOf([
    at(5_000, "user_message"),
    at(5_200),
    at(6_000),
    at(3_600_000, "user_message"),
    at(3_600_100),
  ]);
  expect(timeline.at).toEqual([0, 200, 1_000, 1_000 + breathMs, 1_100 + breathMs]);
  expect(timeline.length).toBe(1_100 + breathMs);
});

test("a clock that was set back does not turn the line back", () => {
  expect(timelineOf([at(9_000), at(4_000), at(4_500)]).at).toEqual([0, 0, 500]);
});

test("at a moment everything is said that is due, all of one moment together", () => {
  const timeline = { at: [0, 0, 100, 100, 300], length: 300 };
  expect([-1, 0, 99, 100, 299, 300, 9_999].map((moment) => saidAt(timeline, moment))).toEqual([0, 2, 2, 4, 4, 5, 5]);
  expect(saidAt({ at: [], length: 0 }, 0)).toBe(0);
});

test("playing moves on by the speed, and stops at the end", () => {
  const timeline = { at: [0, 1_000], length: 1_000 };
  expect(playedTo(timeline, 100, 50, 2)).toBe(200);
  expect(playedTo(timeline, 100, 50, 0.5)).toBe(125);
  expect(playedTo(timeline, 900, 500, 4)).toBe(1_000);
});

test("the transcript of any moment is that of its first events, wherever the reader came from", () => {
  const told = new Told().prompt("go");
  for (let word = 0; word < 1_300; word++) told.text(`m${Math.floor(word / 100)}`, `${word} `);
  const player = new Player(told.events);
  for (const count of [0, 700, 699, 1, 1_301, 500, 501, 1_000, 999, 9_999, 3]) {
    const expected = applyEvents(emptyTranscript, told.events.slice(0, count));
    expect(player.after(count).items, String(count)).toEqual(expected.items);
    expect(player.after(count).last).toBe(expected.last);
  }
});

test("the rates add up to what was said", () => {
  const told = new Told(1_000)
    .prompt("go")
    .text("m", "x".repeat(40))
    .text("m", "x".repeat(80))
    .message("m", "x".repeat(120));
  const timeline = timelineOf(told.events);
  const rates = ratesOf(told.events, timeline, 3);
  expect(rates).toEqual([0, 10, 20]);
});

test("a live rate is what has come in each second", () => {
  const rate = new LiveRate(4);
  rate.see(0, 0);
  rate.see(40, 500);
  rate.see(40, 1_200);
  rate.see(0, 4_000);
  expect(rate.rates()).toEqual([10, 0, 0, 0]);
  expect(rate.current()).toBe(0);
});

test("the scrubber tells where it is and moves there", () => {
  const told = new Told().prompt("go").text("m", "hello").result();
  const timeline = timelineOf(told.events);
  const recording = { events: told.events, timeline, rates: [1, 2], player: new Player(told.events) };
  const playing = { moment: 100, playing: false, speed: 1, seek: vi.fn(), setPlaying: vi.fn(), setSpeed: vi.fn() };
  const onAgain = vi.fn();
  render(<ReplayBar recording={recording} playing={playing} onAgain={onAgain} onClose={() => undefined} />);
  const slider = screen.getByRole("slider", { name: "Position" });
  expect(slider.getAttribute("aria-valuetext")).toBe("0.1 s of 0.2 s");
  expect(screen.getByTestId("replay-time").textContent).toContain("2 of 3 events");
  fireEvent.change(slider, { target: { value: "200" } });
  expect(playing.seek).toHaveBeenCalledWith(200);
  fireEvent.click(screen.getByRole("button", { name: "Play" }));
  expect(playing.setPlaying).toHaveBeenCalledWith(true);
  fireEvent.click(screen.getByRole("button", { name: "Replay as a new agent" }));
  expect(onAgain).toHaveBeenCalledWith(1);
});
