import { applyEvents, emptyTranscript } from "@tokenrail/client";
import { act, fireEvent, render, screen, within } from "@testing-library/react";
import { expect, test, vi } from "vitest";

import { beginningOf } from "../src/conversation/Clipped.tsx";
import { KeepOpen, useUnfold } from "../src/conversation/kept.tsx";
import { rowsOf } from "../src/conversation/rows.ts";
import { RowView } from "../src/conversation/RowView.tsx";
import { foldsOver, matchesOf } from "../src/conversation/search.ts";
import { Told } from "./events.ts";

function rowsAfter(told: Told) {
  return rowsOf(applyEvents(emptyTranscript, told.events).items);
}

function show(told: Told, onRetry?: () => void) {
  return render(
    <KeepOpen>
      {rowsAfter(told).map((row) => (
        <RowView key={row.key} row={row} plain={false} onRetry={onRetry} />
      ))}
    </KeepOpen>,
  );
}

test("a tool card tells the call, its state, what was given and what came of it", () => {
  const told = new Told().prompt("go").call("c", "Bash", { command: "echo hi", description: "Print hi" });
  const running = show(told);
  expect(screen.getByRole("group", { name: "Tool Bash: running" })).toBeTruthy();
  running.unmount();
  show(told.gave("c", "\u001b[32mhi\u001b[0m"));
  const card = screen.getByRole("group", { name: "Tool Bash: done" });
  expect(within(card).getByText("Print hi")).toBeTruthy();
  fireEvent.click(within(card).getByRole("button", { expanded: false }));
  expect(within(card).getByLabelText("Input").textContent).toBe("echo hi");
  expect(within(card).getByLabelText("Output").textContent).toBe("hi");
  fireEvent.click(within(card).getByRole("button", { expanded: true }));
  expect(within(card).queryByLabelText("Output")).toBeNull();
});

test("a call that fails, and one that gets no result, say so", () => {
  show(
    new Told()
      .call("a", "Read", {})
      .gave("a", "no such file", { isError: true })
      .call("b", "Read", {})
      .result({ outcome: "cancelled" }),
  );
  expect(screen.getByRole("group", { name: "Tool Read: failed" }).textContent).toContain("no such file");
  expect(screen.getByRole("group", { name: "Tool Read: no result" })).toBeTruthy();
  expect(screen.getByTestId("result").textContent).toContain("cancelled after 1.2 s");
});

test.each([
  ["*** Begin Patch\n*** End Patch\n", "*** Begin Patch …", "*** Begin Patch\n*** End Patch\n"],
  [7, "7", "7"],
  [false, "false", "false"],
  [["a", "b"], "a", '[\n  "a",\n  "b"\n]'],
])("an input that is no object is shown as it is: %j", (input, summary, text) => {
  show(new Told().call("c", "apply_patch", input));
  expect(document.querySelector(".tool-summary")?.textContent).toBe(summary);
  expect(screen.getByLabelText("Input").textContent?.trim()).toBe(text.trim());
});

test("a tool card tells in short what else was given", () => {
  const unseen = { dangerouslyDisableSandbox: true, env: { A: "1\n2" }, note: "x".repeat(400) };
  show(new Told().call("c", "Bash", { command: "echo ok", description: "Say ok", ...unseen }));
  expect(screen.getByLabelText("Input").textContent).toBe("echo ok");
  const others = [...document.querySelectorAll(".others > div")].map((field) => field.textContent);
  expect(others).toEqual([
    "dangerouslyDisableSandboxtrue",
    'env{"A":"1\\n2"}',
    `note${"x".repeat(160)}…`,
  ]);
});

test("what a sub-agent says and does is inside the call that started it", () => {
  const inner = { parentToolCallId: "c" };
  const told = new Told()
    .call("c", "Agent", { prompt: "look" })
    .message("m", "Looking.", inner)
    .call("d", "Read", { file_path: "x" }, inner)
    .gave("d", "alpha", inner);
  show(told.gave("c", "It says alpha."));
  fireEvent.click(screen.getByRole("button", { name: /^Agent/ }));
  const inside = screen.getByTestId("sub-agent");
  expect(within(inside).getByText("Looking.")).toBeTruthy();
  expect(within(inside).getByRole("group", { name: "Tool Read: done" })).toBeTruthy();
  expect(rowsAfter(told)).toHaveLength(1);
});

test("thinking is folded until somebody asks for it", () => {
  show(
    new Told().message("m", [
      { type: "reasoning", text: `Let me see. ${"x".repeat(200)} The end.` },
      { type: "text", text: "391" },
    ]),
  );
  const thought = screen.getByRole("button", { name: /^Reasoning/ });
  expect(thought.getAttribute("aria-expanded")).toBe("false");
  expect(document.body.textContent).not.toContain("The end.");
  fireEvent.click(thought);
  expect(document.body.textContent).toContain("The end.");
});

test("an error says its class and code, and can be asked again", () => {
  const retry = vi.fn();
  show(
    new Told()
      .prompt("go")
      .failed("Too many requests", { class: "rate_limit", code: "429", retryAfter: 3, recoverable: true }),
    retry,
  );
  const card = screen.getByTestId("error-card");
  for (const words of ["Rate limit", "429", "temporary", "Too many requests", "3 s"]) expect(card.textContent).toContain(words);
  fireEvent.click(within(card).getByRole("button", { name: "Send the message again" }));
  expect(retry).toHaveBeenCalledOnce();
});

test("a token leaves every row but its own as it was", () => {
  const told = new Told().prompt("go").message("a", "done").text("b", "one ");
  const before = applyEvents(emptyTranscript, told.events);
  const rows = rowsOf(before.items);
  const after = rowsOf(applyEvents(before, told.text("b", "two").events).items);
  expect(after.slice(0, 2)).toEqual(rows.slice(0, 2));
  expect(after[0]).toBe(rows[0]);
  expect(after[1]).toBe(rows[1]);
  expect(after[2]).toMatchObject({ key: rows[2]?.key, text: "one two", streaming: true });
});

test("a part that is finished keeps its row while the next part grows", () => {
  const events = new Told().text("m", "first").events;
  const next = {
    ...events[0],
    id: "event-2",
    sequenceNumber: 2,
    metadata: { eventType: "thinking_delta", messageId: "m", part: 1 },
    content: "hm",
  };
  const last = { ...next, id: "event-3", sequenceNumber: 3 };
  const before = applyEvents(emptyTranscript, [...events, next] as never);
  const after = applyEvents(before, [last] as never);
  expect(rowsOf(after.items)[0]).toBe(rowsOf(before.items)[0]);
  expect(rowsOf(after.items)[1]).toMatchObject({ text: "hmhm" });
});

test("the search finds words in what is said and done, in any case", () => {
  const rows = rowsAfter(
    new Told()
      .prompt("Find the RAIL")
      .message("m", "nothing")
      .call("c", "Bash", { command: "grep rail" })
      .gave("c", "track"),
  );
  expect(matchesOf(rows, "rail")).toEqual([0, 2]);
  expect(matchesOf(rows, "Track")).toEqual([2]);
  expect(matchesOf(rows, "  ")).toEqual([]);
});

test("of a long text the beginning is shown, whole lines of it", () => {
  expect(beginningOf("a\nb\nc", 2)).toBe("a\nb");
  expect(beginningOf("a\nb\n", 2)).toBe("a\nb\n");
  expect(beginningOf("a\nb", 2)).toBe("a\nb");
  expect(beginningOf("x".repeat(9_999), 2)).toHaveLength(480);
});

test("every row tells when it was said, and the type of its event", () => {
  const told = new Told()
    .prompt("go")
    .message("m", [{ type: "reasoning", text: "hm" }, { type: "text", text: "well" }])
    .call("c", "Bash", { command: "ls" })
    .asked("1-1", "Bash", {}, [])
    .failed("no", { class: "process" })
    .result();
  show(told);
  const rows = [...document.querySelectorAll<HTMLElement>(".row")];
  expect(rows.map((row) => row.querySelector(".row-type")?.textContent)).toEqual([
    "user / user_message",
    "assistant / message",
    "assistant / message",
    "tool / tool_use",
    "system / permission_request",
    "error / error",
    "response / result",
  ]);
  for (const row of rows) expect(row.querySelector("time")?.textContent).toMatch(/^\d\d:\d\d:\d\d$/);
});

const lines = (count: number, last: string) => `${"line\n".repeat(count)}${last}`;

test("what the search finds and is folded or cut is opened", () => {
  const told = new Told()
    .prompt(lines(900, "deep in the prompt"))
    .message("m", [{ type: "reasoning", text: `${"x".repeat(200)} deep in a thought` }])
    .call("c", "Bash", { command: lines(50, "deep in the command") })
    .gave("c", lines(50, "deep in the output"))
    .call("d", "Agent", { prompt: "look" })
    .message("n", [{ type: "reasoning", text: "deep in a sub-agent" }], { parentToolCallId: "d" });
  const rows = rowsAfter(told);
  let unfold: (keys: readonly string[]) => void = () => undefined;
  function Unfold() {
    unfold = useUnfold();
    return null;
  }
  render(
    <KeepOpen>
      <Unfold />
      {rows.map((row) => (
        <RowView key={row.key} row={row} plain={false} />
      ))}
    </KeepOpen>,
  );
  // Somebody has closed the card.
  fireEvent.click(within(screen.getByRole("group", { name: /Tool Bash/ })).getByRole("button", { name: /Bash/ }));
  for (const words of ["deep in the prompt", "Deep in a thought", "deep in the command", "deep in the output", "deep in a sub-agent"]) {
    const [index = -1] = matchesOf(rows, words);
    const row = document.querySelectorAll("[data-testid^=row-]:not(.tool-inner *)")[index];
    const isDrawn = () => [...(row?.querySelectorAll("pre, .words, .prompt") ?? [])].some((part) => part.textContent?.toLowerCase().includes(words.toLowerCase()));
    expect(isDrawn(), words).toBe(false);
    act(() => unfold(rows.flatMap((each, at) => (at === index ? foldsOver(each, words, false) : []))));
    expect(isDrawn(), words).toBe(true);
  }
});

test("the search opens nothing that shows the words already", () => {
  const rows = rowsAfter(new Told().call("c", "Bash", { command: "grep rail" }).gave("c", lines(50, "track")));
  expect(rows.flatMap((row) => foldsOver(row, "rail", false))).toEqual([`${rows[0]?.key} open`]);
  expect(rows.flatMap((row) => foldsOver(row, "nothing of it", false))).toEqual([]);
});
