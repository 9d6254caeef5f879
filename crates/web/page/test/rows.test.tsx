import { applyEvents, emptyTranscript } from "@tokenrail/client";
import { fireEvent, render, screen, within } from "@testing-library/react";
import { expect, test, vi } from "vitest";

import { Answering } from "../src/conversation/answering.ts";
import { matchesOf } from "../src/conversation/search.ts";
import { KeepOpen } from "../src/conversation/kept.tsx";
import { rowsOf } from "../src/conversation/rows.ts";
import { RowView } from "../src/conversation/RowView.tsx";
import { beginningOf } from "../src/conversation/Clipped.tsx";
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
  expect(screen.getByRole("group", { name: "Tool Read: without a result" })).toBeTruthy();
  expect(screen.getByTestId("result").textContent).toContain("cancelled in 1.2 s");
});

const answers = [
  { optionId: "y", name: "Allow", kind: "allow_once" },
  { optionId: "n", name: "Reject", kind: "reject_once" },
];

test("a question has a button for each answer, and tells what became of it", async () => {
  const told = new Told().asked("1-1", "Bash", { command: "rm -r build" }, answers);
  const answer = vi.fn(() => Promise.reject(new Error("the question 1-1 is not open any more")));
  const asked = render(
    <KeepOpen>
      <Answering value={answer}>
        {rowsAfter(told).map((row) => (
          <RowView key={row.key} row={row} plain={false} />
        ))}
      </Answering>
    </KeepOpen>,
  );
  expect(screen.getByTestId("question-card").textContent).toContain("May it use Bash?");
  expect(screen.getByLabelText("Input").textContent).toBe("rm -r build");
  fireEvent.click(screen.getByRole("button", { name: "Reject" }));
  expect(answer).toHaveBeenCalledWith("1-1", "n");
  expect((screen.getByRole("button", { name: "Allow" }) as HTMLButtonElement).disabled).toBe(true);
  expect((await screen.findByRole("alert")).textContent).toBe("The question 1-1 is not open any more.");
  asked.unmount();

  const looked = show(told);
  expect(screen.queryByRole("button", { name: "Allow" })).toBeNull();
  looked.unmount();
  show(told.settled("1-1", { optionId: "y", by: "user" }));
  expect(screen.getByTestId("question-card").textContent).toContain("Answered: Allow.");
});

test("a question that nobody answered says so", () => {
  show(
    new Told()
      .asked("1-1", "Write", {}, answers)
      .settled("1-1", { optionId: "n", by: "timeout" })
      .asked("1-2", "Write", {}, answers)
      .result({ outcome: "interrupted" }),
  );
  const [late, closed] = screen.getAllByTestId("question-card").map((card) => card.textContent);
  expect(late).toContain("Nobody answered in time: Reject.");
  expect(closed).toContain("The turn ended before anybody answered.");
});

test("a replacement is shown as the lines that go and those that come", () => {
  show(new Told().call("c", "Edit", { file_path: "a.md", old_string: "one\ntwo\n", new_string: "one\n2\n" }));
  expect(screen.getByLabelText("Input").textContent).toBe("- one\n- two\n+ one\n+ 2");
});

test("what a sub-agent says and does is inside the call that started it", () => {
  const inner = { parentToolCallId: "c" };
  const told = new Told()
    .call("c", "Agent", { prompt: "look" })
    .message("m", "Looking.", inner)
    .call("d", "Read", { file_path: "x" }, inner)
    .gave("d", "alpha", inner);
  show(told.gave("c", "It says alpha."));
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
  const thought = screen.getByRole("button", { name: /^Thought/ });
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
  for (const words of ["Rate limit", "429", "Too many requests", "3 s"]) expect(card.textContent).toContain(words);
  fireEvent.click(within(card).getByRole("button", { name: "Ask again" }));
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
