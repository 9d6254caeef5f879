import { applyEvents, emptyTranscript } from "@tokenrail/client";
import { fireEvent, render, screen, within } from "@testing-library/react";
import { expect, test, vi } from "vitest";

import { kindOf } from "../src/content/kind.ts";
import { endOf } from "../src/conversation/Clipped.tsx";
import { KeepOpen } from "../src/conversation/kept.tsx";
import { rowsOf } from "../src/conversation/rows.ts";
import { RowView } from "../src/conversation/RowView.tsx";
import { foldsOver, matchesOf } from "../src/conversation/search.ts";
import { diffOf } from "../src/conversation/tools/diff.ts";
import { NewestTodos, newestTodos, todosOf } from "../src/conversation/tools/newest-todos.ts";
import { Told } from "./events.ts";

function rowsAfter(told: Told) {
  return rowsOf(applyEvents(emptyTranscript, told.events).items);
}

function show(told: Told) {
  const rows = rowsAfter(told);
  return render(
    <KeepOpen>
      <NewestTodos value={newestTodos(rows)}>
        {rows.map((row) => (
          <RowView key={row.key} row={row} plain={false} />
        ))}
      </NewestTodos>
    </KeepOpen>,
  );
}

const numbered = (count: number) => Array.from({ length: count }, (_, at) => `line ${at + 1}`).join("\n");

/** The lines of a diff, each with its mark. */
function diffLines(): string[] {
  return [...document.querySelectorAll(".diff-line")].map(
    (line) => `${line.querySelector(".diff-mark")?.textContent}${line.querySelector(".diff-text")?.textContent?.trimEnd()}`,
  );
}

const marked = () => [...document.querySelectorAll(".diff-line mark")].map((mark) => mark.textContent);

test("a command that failed shows the end of its output, and its exit code", () => {
  const output = `Exit code 101\n${numbered(80)}\nerror: it is broken\n`;
  show(new Told().call("c", "Bash", { command: "cargo test" }).gave("c", output, { isError: true }));
  const shown = screen.getByLabelText("Output of the failed call").textContent;
  expect(shown).toContain("error: it is broken");
  expect(shown).not.toContain("line 5\n");
  expect(screen.getByRole("group", { name: "Tool Bash: failed" }).textContent).toContain("exit 101");
  fireEvent.click(screen.getByRole("button", { name: "⋯ 70 lines above" }));
  expect(screen.getByLabelText("Output of the failed call").textContent).toContain("line 5\n");
  fireEvent.click(screen.getByRole("button", { name: "Show less" }));
  expect(screen.getByLabelText("Output of the failed call").textContent).not.toContain("line 5\n");
});

test("the end of a text is cut by lines, and by characters", () => {
  expect(endOf("a\nb\nc\n", 2)).toBe("b\nc");
  expect(endOf("a", 2)).toBe("a");
  expect(endOf(`${"x".repeat(9_999)}end`, 2)).toHaveLength(480);
  expect(endOf(`${"x".repeat(9_999)}end`, 2).endsWith("end")).toBe(true);
});

test.each([
  ["Claude", "Edit", { file_path: "a.rs", old_string: "one\ntwo words\n", new_string: "one\ntwo terms\n" }],
  ["opencode", "edit", { filePath: "a.rs", oldString: "one\ntwo words\n", newString: "one\ntwo terms\n" }],
  ["Gemini", "replace", { file_path: "a.rs", old_string: "one\ntwo words\n", new_string: "one\ntwo terms\n" }],
  ["Claude", "MultiEdit", { file_path: "a.rs", edits: [{ old_string: "one\ntwo words", new_string: "one\ntwo terms" }] }],
])("an edit of %s by %s shows its changed lines and words, and their number", (_, name, input) => {
  show(new Told().call("c", name, input));
  expect(diffLines()).toEqual([" one", "-two words", "+two terms"]);
  expect(marked()).toEqual(["words", "terms"]);
  expect(document.querySelector(".tool-head")?.textContent).toContain("a.rs+1 −1");
  expect(screen.queryByText("old_string")).toBeNull();
});

test("an end of line that comes or goes is a part of the change", () => {
  show(new Told().call("c", "Edit", { file_path: "a.md", old_string: "one\n", new_string: "one" }));
  expect(diffLines()).toEqual([" one", "-"]);
});

test("a file that is written has line numbers", () => {
  show(new Told().call("c", "Write", { file_path: "a.md", content: "one\ntwo\n" }));
  expect(diffLines()).toEqual(["+one", "+two"]);
  expect([...document.querySelectorAll(".diff-number")].map((number) => number.textContent)).toEqual(["1", "2"]);
});

test("unchanged lines of an edit are folded, and the search opens them", () => {
  const text = numbered(30);
  const input = { file_path: "a", old_string: text, new_string: text.replace("line 20", "line twenty") };
  const told = new Told().call("c", "Edit", input);
  show(told);
  expect(diffLines()).toHaveLength(8);
  expect(document.querySelector(".diff-gap")?.textContent).toContain("16 lines");
  const [row] = rowsAfter(told);
  if (!row) throw new Error("no row");
  expect(foldsOver(row, "line 11", false)).toContain(`${row.key} diff 0 all`);
  expect(foldsOver(row, "twenty", false)).toEqual([`${row.key} open`]);
  fireEvent.click(screen.getByRole("button", { name: /^Show \d+ more lines$/ }));
  expect(diffLines()).toContain(" line 11");
});

test("an edit is compared only once", () => {
  const input = { file_path: "a", old_string: "one", new_string: "two" };
  const [first, second] = [kindOf("Edit", input), kindOf("Edit", input)];
  if (first.kind !== "edit" || second.kind !== "edit" || !first.changes[0] || !second.changes[0]) throw new Error("no edit");
  expect(diffOf(first.changes[0])).toBe(diffOf(second.changes[0]));
});

test("an edit that is too long to compare is shown as clipped text", () => {
  const [before, after] = ["x\n".repeat(40_000), "y\n".repeat(40_000)];
  show(new Told().call("c", "Edit", { file_path: "a", old_string: before, new_string: after }));
  expect(document.querySelector(".diff")).toBeNull();
  expect(screen.getByLabelText("Input").textContent?.length).toBeLessThan(10_000);
});

test("a patch is shown as it is, with coloured lines", () => {
  const patch = "*** Begin Patch\n*** Update File: a\n-old\n+new\n*** End Patch";
  show(new Told().call("c", "apply_patch", { input: patch }));
  expect(screen.getByLabelText("Input").textContent).toBe(patch);
  const marks = [...document.querySelectorAll(".patch-line")].map((line) => line.getAttribute("data-mark"));
  expect(marks).toEqual(["@", "@", "-", "+", "@"]);
});

const todos = [
  { content: "Read", status: "completed" },
  { content: "Write", status: "in_progress" },
  { content: "Test", status: "pending" },
];

test("a to-do list is a checklist, and an earlier one is folded", () => {
  show(new Told().call("c", "TodoWrite", { todos }).gave("c", "ok").call("d", "update_plan", { plan: [{ step: "Ship", status: "completed" }] }));
  expect(screen.getByText("1 of 3")).toBeTruthy();
  expect(screen.getByText("1 of 1")).toBeTruthy();
  const list = screen.getByRole("list", { name: "To-do list" });
  expect(within(list).getAllByRole("listitem").map((item) => item.textContent)).toEqual(["Ship"]);
  fireEvent.click(screen.getByRole("button", { name: /To-do list/ }));
  expect(screen.getByRole("img", { name: "in progress" }).parentElement?.textContent).toBe("Write");
});

test("a file that was read is one line until somebody opens it, and the search finds what is in it", () => {
  const told = new Told().call("c", "Read", { file_path: "src/retry.rs" }).gave("c", "alpha\nbeta\n");
  show(told);
  const head = screen.getByRole("button", { name: /Read/, expanded: false });
  expect(head.textContent).toContain("src/retry.rs2 lines");
  expect(screen.queryByLabelText("Output")).toBeNull();
  const rows = rowsAfter(told);
  expect(matchesOf(rows, "beta")).toEqual([0]);
  expect(rows.flatMap((row) => foldsOver(row, "beta", false))).toEqual([`${rows[0]?.key} open`]);
  fireEvent.click(head);
  expect(screen.getByLabelText("Output").textContent).toBe("alpha\nbeta\n");
});

test("a plan is Markdown", () => {
  show(new Told().call("c", "ExitPlanMode", { plan: "# Plan\n\n* first" }));
  expect(within(screen.getByRole("group", { name: "Plan" })).getByRole("heading", { name: "Plan" })).toBeTruthy();
});

test("a finished edit leaves out what is usual, and a time too short to measure", () => {
  const input = { file_path: "a", old_string: "1", new_string: "2", replace_all: false, instruction: "Do it" };
  show(new Told(1).call("c", "Edit", input).gave("c", "ok"));
  expect(document.querySelector(".others")).toBeNull();
  expect(document.querySelector(".took")).toBeNull();
});

test("a finished edit shows what is not usual, and its time", () => {
  const input = { file_path: "a", old_string: "1", new_string: "2", replace_all: true, filePath: "b" };
  show(new Told(1_500).call("c", "Edit", input).gave("c", "ok"));
  expect([...document.querySelectorAll(".others dt")].map(({ textContent }) => textContent)).toEqual(["replace_all", "filePath"]);
  expect(document.querySelector(".took")?.textContent).toBe("1.5 s");
});

test("a to-do list is read only once, and is the same for the card and for the list that is pinned", () => {
  const input = { todos };
  const kind = kindOf("TodoWrite", input);
  const [row] = rowsAfter(new Told().call("c", "TodoWrite", input));
  expect(kind.kind === "todos" && row && todosOf(row)).toBe(kind.kind === "todos" && kind.todos);
});

test("an edit with any spelling that is too long to compare is shown as a change", () => {
  const [oldString, newString] = ["x\n".repeat(40_000), "y\n".repeat(40_000)];
  show(new Told().call("c", "edit", { filePath: "a", oldString, newString }));
  expect(screen.getByLabelText("Input").textContent).toMatch(/^- x\n- x/);
});

const long = { file_path: "a", old_string: `${numbered(30)}\nlast`, new_string: `${numbered(30).replace("line 20", "line twenty\nand more")}` };

/** The lines of the split view: left and right. */
function pairs(): string[][] {
  const text = (cell: Element) => (cell.textContent ?? "").trimEnd();
  return [...document.querySelectorAll(".diff-pair")].map((pair) => [...pair.children].map(text));
}

test("differences are shown side by side if the user wants it and there is room, and this is remembered", () => {
  localStorage.clear();
  const width = vi.spyOn(Element.prototype, "clientWidth", "get").mockReturnValue(760);
  const told = new Told().call("c", "Edit", { file_path: "a", old_string: "one\ntwo\nthree", new_string: "one\n2\n3\nfour" });
  const first = show(told);
  expect([pairs(), screen.getByRole("button", { name: "Unified" }).ariaPressed]).toEqual([[], "true"]);
  fireEvent.click(screen.getByRole("button", { name: "Split" }));
  expect(pairs()).toEqual([[" one", " one"], ["-two", "+2"], ["-three", "+3"], ["", "+four"]]);
  first.unmount();
  const second = show(told);
  expect(pairs()).toHaveLength(4);
  second.unmount();
  // On a narrow screen, neither the columns nor the switch are there.
  width.mockReturnValue(360);
  const narrow = show(told);
  expect([pairs(), screen.queryByRole("button", { name: "Split" })]).toEqual([[], null]);
  expect(diffLines()).toHaveLength(6);
  narrow.unmount();
  width.mockReturnValue(760);
  show(new Told().call("w", "Write", { file_path: "a", content: "new\n" }));
  expect([pairs(), screen.queryByRole("button", { name: "Split" })]).toEqual([[], null]);
  width.mockRestore();
  localStorage.clear();
});

test("the split view folds the same lines, and opens them", () => {
  localStorage.setItem("tokenrail-diff", "split");
  const width = vi.spyOn(Element.prototype, "clientWidth", "get").mockReturnValue(760);
  show(new Told().call("c", "Edit", long));
  expect(document.querySelector(".diff-gap")?.textContent).toContain("16 lines");
  expect(pairs()).toContainEqual(["-line 20", "+line twenty"]);
  expect(pairs()).toContainEqual(["", "+and more"]);
  expect(pairs()).not.toContainEqual([" line 2", " line 2"]);
  fireEvent.click(screen.getByRole("button", { name: /^Show \d+ more lines$/ }));
  expect(pairs()).toContainEqual([" line 2", " line 2"]);
  width.mockRestore();
  localStorage.clear();
});
