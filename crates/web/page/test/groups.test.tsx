import { applyEvents, emptyTranscript } from "@tokenrail/client";
import { fireEvent, render, screen } from "@testing-library/react";
import { expect, test } from "vitest";

import { todosIn } from "../src/content/todos.ts";
import { Folder } from "../src/conversation/folder.ts";
import { grouped } from "../src/conversation/groups.ts";
import { KeepOpen } from "../src/conversation/kept.tsx";
import { hasKey } from "../src/conversation/row.ts";
import { rowsOf } from "../src/conversation/rows.ts";
import { RowView } from "../src/conversation/RowView.tsx";
import { foldsOver, matchesOf } from "../src/conversation/search.ts";
import { newestTodos } from "../src/conversation/tools/newest-todos.ts";
import { PinnedTodos } from "../src/conversation/tools/PinnedTodos.tsx";
import { Told } from "./events.ts";

function rowsAfter(told: Told) {
  return grouped(rowsOf(applyEvents(emptyTranscript, told.events).items));
}

function view(told: Told) {
  return (
    <KeepOpen>
      {rowsAfter(told).map((row) => (
        <RowView key={row.key} row={row} plain={false} />
      ))}
    </KeepOpen>
  );
}

/** Calls that succeed, one after the other. */
function succeeded(told: Told, ...calls: [name: string, input: object][]): Told {
  for (const [name, input] of calls) {
    const id = `c${told.events.length}`;
    told.call(id, name, input).gave(id, `output ${id}`);
  }
  return told;
}

const kinds = (told: Told) => rowsAfter(told).map(({ kind }) => kind);
const command = (text: string): [string, object] => ["Bash", { command: text }];
const read = (file: string): [string, object] => ["Read", { file_path: file }];

test("a call that succeeded is one line, and a failed one and an edit are open", () => {
  const told = succeeded(new Told(), command("ls"), ["Edit", { file_path: "a", old_string: "1", new_string: "2" }]);
  render(view(told.call("f", "Bash", { command: "no" }).gave("f", "it is broken", { isError: true })));
  expect(screen.queryByText("output c0")).toBeNull();
  expect(screen.getByLabelText("Changes")).toBeTruthy();
  expect(screen.getByText("it is broken")).toBeTruthy();
  fireEvent.click(screen.getByRole("button", { name: /^Bash ?ls/ }));
  expect(screen.getByText("output c0")).toBeTruthy();
});

test("three folded calls one after the other are a group, which opens", () => {
  render(view(succeeded(new Told(), read("a"), read("b"), read("a"), ["Grep", { pattern: "x" }], command("ls"))));
  expect(screen.queryByTestId("tool-card")).toBeNull();
  fireEvent.click(screen.getByRole("button", { name: "Explored 2 files, searched once, ran 1 command" }));
  expect(screen.getAllByTestId("tool-card")).toHaveLength(5);
});

test("calls of other tools are counted, and are the others only beside calls that are named", () => {
  const other: [string, object] = ["mcp__notes__find", { text: "x" }];
  const { unmount } = render(view(succeeded(new Told(), other, other, other)));
  expect(screen.getByRole("button", { name: "Made 3 tool calls" })).toBeTruthy();
  unmount();
  render(view(succeeded(new Told(), other, command("ls"), other)));
  expect(screen.getByRole("button", { name: "Ran 1 command, made 2 other calls" })).toBeTruthy();
});

test("two calls, and calls with something between them, are no group", () => {
  expect(kinds(succeeded(new Told(), read("a"), read("b")))).toEqual(["tool", "tool"]);
  const told = succeeded(new Told(), read("a"), read("b"));
  expect(kinds(succeeded(told.message("m", "So."), read("c")))).toEqual(["tool", "tool", "text", "tool"]);
});

test("a call that runs, fails, edits or was asked about is not in a group", () => {
  const three = () => succeeded(new Told(), read("a"), read("b"), read("c"));
  expect(kinds(three().call("r", "Bash", { command: "x" }))).toEqual(["group", "tool"]);
  expect(kinds(three().call("r", "Bash", {}).gave("r", "", { isError: true }))).toEqual(["group", "tool"]);
  expect(kinds(succeeded(three(), ["Write", { file_path: "d", content: "" }]))).toEqual(["group", "tool"]);
  const asked = three().call("q", "Bash", {}).asked("1-1", "Bash", {}, [], { toolCallId: "q" }).settled("1-1", { by: "user" });
  expect(kinds(asked.gave("q", "ok"))).toEqual(["group", "tool"]);
});

test("a group keeps open what the user opened before it was a group", () => {
  const told = succeeded(new Told(), command("one"), command("two"));
  const shown = render(view(told));
  fireEvent.click(screen.getByRole("button", { name: /^Bash ?one/ }));
  shown.rerender(view(succeeded(told, command("three"))));
  expect(screen.getByTestId("tool-group").querySelector("[aria-expanded]")?.ariaExpanded).toBe("true");
  expect(screen.getByText("output c0")).toBeTruthy();
});

test("an unchanged group is the same row, and a search opens it", () => {
  const items = applyEvents(emptyTranscript, succeeded(new Told(), command("one"), command("two"), command("find me")).events).items;
  const [row] = grouped(rowsOf(items));
  expect(grouped(rowsOf(items))[0]).toBe(row);
  expect(row && matchesOf([row], "find me")).toEqual([0]);
  const last = row?.kind === "group" ? row.calls[2]?.key : "";
  expect(row && foldsOver(row, "find me", false)).toEqual([`${row?.key} open`, `${last} open`]);
});

const todo = (content: string, status: string) => ({ content, status });

test("the to-do lists of all agents are read", () => {
  const expected = [
    { text: "Look", state: "done" },
    { text: "Mend", state: "active" },
  ];
  const steps = [{ step: "Look", status: "completed" }, { step: "Mend", status: "inProgress" }];
  for (const list of [
    { todos: [todo("Look", "completed"), todo("Mend", "in_progress")] },
    { entries: [todo("Look", "completed"), todo("Mend", "in_progress")] },
    { items: [{ text: "Look", completed: true }, { text: "Mend", status: "in_progress" }] },
    { plan: steps },
    { method: "turn/plan/updated", params: { explanation: null, plan: steps } },
  ]) {
    expect(todosIn(list)).toEqual(expected);
  }
  expect(todosIn({ params: { plan: [] } })).toBeUndefined();
});

test("the newest to-do list is pinned until all of it is done", () => {
  const told = new Told().call("a", "TodoWrite", { todos: [todo("Look", "in_progress")] });
  told.call("b", "TodoWrite", { todos: [todo("Look", "completed"), todo("Mend", "in_progress"), todo("Test", "pending")] });
  const pinned = (after: Told) => <PinnedTodos rows={rowsAfter(after)} newest={newestTodos(rowsAfter(after))} />;
  const shown = render(pinned(told));
  expect(screen.getByTestId("pinned-todos").textContent).toBe("1 of 3Mend");
  fireEvent.click(screen.getByRole("button"));
  expect(screen.getByRole("list", { name: "To-do list" }).children).toHaveLength(3);
  shown.rerender(pinned(told.call("c", "TodoWrite", { todos: [todo("Look", "completed")] })));
  expect(screen.queryByTestId("pinned-todos")).toBeNull();
});

test("a group that grows upwards stays open, and is known by the key that it had", () => {
  const told = succeeded(new Told(), command("one"), command("two"), command("three"), command("four"));
  const newest = (calls: number) => {
    const later = new Told();
    later.events.push(...told.events.slice(-2 * calls));
    return later;
  };
  const shown = render(view(newest(3)));
  fireEvent.click(screen.getByTestId("tool-group").querySelector("button") as HTMLElement);
  const [before] = rowsAfter(newest(3));
  shown.rerender(view(told));
  const [after] = rowsAfter(told);
  expect([before?.kind, after?.kind]).toEqual(["group", "group"]);
  expect(after && hasKey(after, before?.key)).toBe(true);
  expect(screen.getByRole("button", { name: "Ran 4 commands" }).ariaExpanded).toBe("true");
});

test("a search opens the group in which a sub-agent has found the words", () => {
  const told = new Told().call("t", "Task", { description: "Look", prompt: "Look around" });
  for (const [id, words] of [["a", "one"], ["b", "two"], ["c", "find me"]] as const)
    told.call(id, "Bash", { command: words }, { parentToolCallId: "t" }).gave(id, "ok", { parentToolCallId: "t" });
  const [row] = rowsAfter(told.gave("t", "done"));
  if (row?.kind !== "tool") throw new Error("no call");
  const [group] = grouped(row.inner);
  expect(group?.kind).toBe("group");
  expect(foldsOver(row, "find me", false)).toContain(`${group?.key} open`);
});

test("a changed cell of a notebook is no call among others, and has its new source and a short path", () => {
  const cell = { notebook_path: "/repo/docs/a.ipynb", cell_id: "c3", new_source: "df.plot()", edit_mode: "replace" };
  const told = succeeded(new Told(), command("one"), command("two"), ["NotebookEdit", cell], command("three"));
  expect(kinds(told)).toEqual(["tool", "tool", "tool", "tool"]);
  render(<Folder value="/repo">{view(new Told().call("n", "NotebookEdit", cell).gave("n", "Updated cell c3 with df.plot()"))}</Folder>);
  expect(document.querySelector(".tool-summary")?.textContent).toBe("docs/a.ipynb");
  expect(screen.getByLabelText("Input").textContent).toBe("df.plot()");
  expect([...document.querySelectorAll(".others dt")].map(({ textContent }) => textContent)).toEqual(["cell_id", "edit_mode"]);
  expect(screen.getByLabelText("Output").closest(".detail")).toBeTruthy();
});
