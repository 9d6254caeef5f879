import { applyEvents, emptyTranscript } from "@tokenrail/client";
import { fireEvent, render, screen, within } from "@testing-library/react";
import { expect, test, vi } from "vitest";

import { type Answer, Answering } from "../src/conversation/answering.ts";
import { KeepOpen } from "../src/conversation/kept.tsx";
import { rowsOf } from "../src/conversation/rows.ts";
import { RowView } from "../src/conversation/RowView.tsx";
import { Told } from "./events.ts";

const answers = [
  { optionId: "y", name: "Allow", kind: "allow_once" },
  { optionId: "a", name: "Always allow Edit (for this session)", kind: "allow_always" },
  { optionId: "n", name: "Reject", kind: "reject_once" },
];

function view(told: Told, answer?: Answer) {
  return (
    <KeepOpen>
      <input aria-label="Elsewhere" />
      <Answering value={answer}>
        {rowsOf(applyEvents(emptyTranscript, told.events).items).map((row) => (
          <RowView key={row.key} row={row} plain={false} />
        ))}
      </Answering>
    </KeepOpen>
  );
}

const change = { file_path: "src/retry.rs", old_string: "one\ntwo\n", new_string: "one\n2\nthree\n" };
const asking = () => new Told().call("c", "Edit", change).asked("1-1", "Edit", change, answers, { toolCallId: "c" });
const names = () => within(screen.getByRole("group", { name: "Answers" })).getAllByRole("button").map((each) => each.textContent);

test("a call that needs a permission is one card: the file, the change and the answers", () => {
  const { container, rerender } = render(view(asking(), () => Promise.resolve()));
  expect(screen.queryByTestId("tool-card")).toBeNull();
  expect(container.querySelectorAll("article")).toHaveLength(1);
  expect(screen.getByRole("heading").textContent).toBe("Allow Edit on src/retry.rs?+2 −1");
  expect(screen.getByLabelText("Changes").textContent).toBe(" one\n-two\n+2\n+three\n");
  expect(container.textContent).not.toContain("old_string");
  expect(names()).toEqual(["1Allow once", "2Always allow Edit (for this session)", "3Reject"]);
  expect(container.textContent).not.toContain("running");

  const allowed = asking().settled("1-1", { optionId: "y", by: "user" });
  rerender(view(allowed, () => Promise.resolve()));
  expect(screen.queryByTestId("question-card")).toBeNull();
  expect(screen.getByRole("group", { name: "Tool Edit: running" })).toBeTruthy();
  expect(screen.getByTestId("settled").textContent).toBe("Answered: Allow once.");
});

test("a request for a call that is not in the list is a card of its own", () => {
  render(view(new Told().asked("1-1", "Edit", change, answers, { toolCallId: "unknown" })));
  expect(screen.getByTestId("question-card")).toBeTruthy();
});

test("the keys 1, 2 and 3 answer, unless the user writes or the dialog of the keys is open", () => {
  const answer = vi.fn(() => Promise.resolve());
  render(view(asking(), answer));
  fireEvent.keyDown(screen.getByLabelText("Elsewhere"), { key: "1" });
  fireEvent.keyDown(window, { key: "1", ctrlKey: true });
  fireEvent.keyDown(window, { key: "4" });
  const dialog = document.body.appendChild(document.createElement("dialog"));
  dialog.open = true;
  fireEvent.keyDown(window, { key: "1" });
  dialog.remove();
  expect(answer).not.toHaveBeenCalled();
  fireEvent.keyDown(window, { key: "3" });
  expect(answer).toHaveBeenCalledExactlyOnceWith("1-1", { optionId: "n" });
});

test("of two requests, a key answers the first", () => {
  const answer = vi.fn(() => Promise.resolve());
  render(view(new Told().asked("1-1", "Bash", {}, answers).asked("1-2", "Bash", {}, answers), answer));
  fireEvent.keyDown(window, { key: "1" });
  expect(answer).toHaveBeenCalledExactlyOnceWith("1-1", { optionId: "y" });
});

test("a key does not allow what has not been seen, and a card below the screen has no keys", () => {
  const answer = vi.fn(() => Promise.resolve());
  const height = vi.spyOn(Element.prototype, "scrollHeight", "get").mockReturnValue(600);
  const seen = render(view(asking(), answer));
  fireEvent.keyDown(window, { key: "1" });
  height.mockRestore();
  seen.unmount();
  vi.spyOn(Element.prototype, "getBoundingClientRect").mockReturnValue(new DOMRect(0, 5_000, 100, 40));
  render(view(asking(), answer));
  fireEvent.keyDown(window, { key: "1" });
  vi.restoreAllMocks();
  expect(answer).not.toHaveBeenCalled();
});

test("a plan is approved or not, and is shown as Markdown", () => {
  render(view(new Told().asked("1-1", "ExitPlanMode", { plan: "# Steps\n\n1. Look" }, answers), () => Promise.resolve()));
  expect(screen.getByRole("heading", { name: "Steps" })).toBeTruthy();
  expect(names()).toEqual(["1Approve plan", "2Always allow Edit (for this session)", "3Keep planning"]);
});

const survey = {
  question: "Which library?",
  header: "Library",
  multiSelect: true,
  options: [{ label: "date-fns", description: "Small functions" }, { label: "luxon" }],
};
const choices = [
  { optionId: "answer_1", name: "date-fns", kind: "allow_once" },
  { optionId: "answer_2", name: "luxon", kind: "allow_once" },
  { optionId: "reject", name: "Decline to answer", kind: "reject_once" },
];

test("a question of the agent is a form with its answers", () => {
  const answer = vi.fn(() => Promise.resolve());
  const { container } = render(view(new Told().asked("1-1", "AskUserQuestion", survey, choices), answer));
  expect(screen.getByRole("group", { name: "Library Which library?" })).toBeTruthy();
  expect(screen.getAllByRole("radio").map((radio) => radio.closest("label")?.textContent)).toEqual([
    "date-fnsSmall functions1",
    "luxon2",
  ]);
  expect(container.textContent).toContain("you can send only one");
  const send = screen.getByRole<HTMLButtonElement>("button", { name: "Answer" });
  expect(send.disabled).toBe(true);
  fireEvent.keyDown(window, { key: "1" });
  fireEvent.keyDown(document.activeElement ?? window, { key: "2" });
  fireEvent.click(send);
  expect(answer).toHaveBeenCalledExactlyOnceWith("1-1", { optionId: "answer_2" });
});

test("the line of a question that was answered has the answer", () => {
  const told = new Told().call("c", "AskUserQuestion", { questions: [survey] });
  told.asked("1-1", "AskUserQuestion", survey, choices, { toolCallId: "c" });
  render(view(told.settled("1-1", { optionId: "answer_2", by: "user" }).gave("c", "ok")));
  const line = screen.getByRole("button", { expanded: false });
  expect(line.textContent).toContain("Which library? luxon");
  fireEvent.click(line);
  expect(screen.getByTestId("settled").textContent).toBe("Which library? Answered: luxon.");
  expect(screen.queryByLabelText("Input")).toBeNull();
});

test.each([
  ["another tool", "Bash", { ...survey, command: "rm x" }, choices],
  ["an option with another name", "AskUserQuestion", survey, [{ ...choices[0], name: "x" }, ...choices.slice(1)]],
  ["fewer options", "AskUserQuestion", survey, choices.slice(1)],
])("%s does not look like a question of the agent", (_, name, input, options) => {
  render(view(new Told().asked("1-1", name, input, options), () => Promise.resolve()));
  expect(screen.queryByRole("radio")).toBeNull();
  expect(screen.getByLabelText("Input").textContent).toContain("Which library?");
});

test("hidden characters in a change are shown", () => {
  const input = { file_path: "a\u202eb", old_string: "x", new_string: "x\u200by" };
  render(view(new Told().asked("1-1", "Edit", input, answers)));
  expect(screen.getByLabelText("Changes").textContent).toContain("x\\u{200b}y");
  expect(screen.getByRole("heading").textContent).toContain("a\\u{202e}b");
});

/** The names of the fields that a request shows beside its change. */
const fields = () => [...screen.getByLabelText("Input").querySelectorAll("dt")].map(({ textContent }) => textContent);

test.each([
  ["another file", { ...change, filePath: "/etc/passwd" }, ["filePath"]],
  ["the same file twice", { ...change, path: "src/retry.rs" }, ["path"]],
  ["the texts the other way round", { ...change, oldString: change.new_string, newString: change.old_string }, ["oldString", "newString"]],
  ["the same text twice", { ...change, newText: change.new_string }, ["newText"]],
  ["a change and a whole file", { ...change, content: "all" }, ["content"]],
  ["a whole file and a list of edits", { file_path: "a", content: "all", edits: [] }, ["edits"]],
  ["edits with both spellings", { file_path: "a", edits: [{ old_string: "1", new_string: "2", newString: "3" }] }, ["edits"]],
  ["an edit with another field", { file_path: "a", edits: [{ old_string: "1", new_string: "2", replace_all: true }] }, ["edits"]],
])("a request with %s shows what the change does not show", (_, input, names) => {
  render(view(new Told().asked("1-1", "Edit", input, answers)));
  expect(screen.getAllByLabelText("Changes").length).toBeGreaterThan(0);
  expect(fields()).toEqual(names);
});

test("a request whose change shows everything has no other fields", () => {
  const edits = [{ oldText: "1", newText: "2" }, { old_string: "3", new_string: "4" }];
  render(view(new Told().asked("1-1", "Edit", { absolute_path: "a", edits }, answers)));
  expect(fields()).toEqual([]);
});

test("a request that empties a file says so", () => {
  render(view(new Told().asked("1-1", "Write", { file_path: "notes.md", content: "" }, answers)));
  expect(screen.getByRole("heading").textContent).toContain("Allow Write on notes.md?");
  expect(screen.queryByLabelText("Changes")).toBeNull();
  expect(screen.getByLabelText("Input").textContent).toContain('content""');
});

test("an approval has one layout, so a wide window cannot hide lines that were seen", () => {
  localStorage.setItem("tokenrail-diff", "split");
  vi.spyOn(Element.prototype, "clientWidth", "get").mockReturnValue(1_000);
  render(view(asking(), () => Promise.resolve()));
  vi.restoreAllMocks();
  localStorage.clear();
  expect(screen.getByLabelText("Changes").dataset["layout"]).toBe("unified");
  expect(screen.queryByRole("button", { name: "Split" })).toBeNull();
});
