import { applyEvents, emptyTranscript } from "@tokenrail/client";
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";

import { AgentId } from "../src/conversation/agent-id.ts";
import { type Answer, Answering } from "../src/conversation/answering.ts";
import { KeepOpen } from "../src/conversation/kept.tsx";
import { rowsOf } from "../src/conversation/rows.ts";
import { RowView } from "../src/conversation/RowView.tsx";
import { Told } from "./events.ts";

const answers = [
  { optionId: "y", name: "Allow", kind: "allow_once" },
  { optionId: "n", name: "Reject", kind: "reject_once" },
];
const survey = {
  question: "Which library?",
  multiSelect: true,
  options: [{ label: "date-fns" }, { label: "luxon" }],
};
const choices = [
  { optionId: "answer_1", name: "date-fns", kind: "allow_once" },
  { optionId: "answer_2", name: "luxon", kind: "allow_once" },
  { optionId: "reject", name: "Decline to answer", kind: "reject_once" },
];

function show(told: Told): ReturnType<typeof vi.fn<Answer>> {
  const answer = vi.fn<Answer>(() => Promise.resolve());
  render(
    <KeepOpen>
      <Answering value={answer}>
        {rowsOf(applyEvents(emptyTranscript, told.events).items).map((row) => (
          <RowView key={row.key} row={row} plain={false} />
        ))}
      </Answering>
    </KeepOpen>,
  );
  return answer;
}

const asking = (accepts: object) => show(new Told().asked("1-1", "Bash", { command: "ls" }, answers, { accepts }));
const choosing = (accepts: object) => show(new Told().asked("1-1", "AskUserQuestion", survey, choices, { accepts }));
const button = (name: string) => screen.getByRole<HTMLButtonElement>("button", { name });

test("a rejection may have a note, and the keys still reject at once", () => {
  const answer = asking({ note: true });
  expect(screen.queryByLabelText("Note to the agent")).toBeNull();
  fireEvent.click(button("Reject with a note…"));
  const field = screen.getByLabelText("Note to the agent");
  expect(document.activeElement).toBe(field);
  fireEvent.keyDown(field, { key: "Escape" });
  expect(screen.queryByLabelText("Note to the agent")).toBeNull();
  expect(document.activeElement).toBe(button("Reject with a note…"));
  fireEvent.click(button("Reject with a note…"));
  expect(button("Reject and send the note").disabled).toBe(true);
  fireEvent.keyDown(screen.getByLabelText("Note to the agent"), { key: "2" });
  expect(answer).not.toHaveBeenCalled();
  fireEvent.change(screen.getByLabelText("Note to the agent"), { target: { value: " use the other file " } });
  fireEvent.click(button("Reject and send the note"));
  expect(answer).toHaveBeenCalledExactlyOnceWith("1-1", { optionId: "n", note: "use the other file" });
});

test("key 2 rejects without a note", () => {
  const answer = asking({ note: true });
  fireEvent.keyDown(window, { key: "2" });
  expect(answer).toHaveBeenCalledExactlyOnceWith("1-1", { optionId: "n" });
});

test("a request that accepts no note has no field for it", () => {
  asking({});
  expect(screen.queryByRole("button", { name: /note/ })).toBeNull();
});

test("several answers are checkboxes, with a field for another answer", () => {
  const answer = choosing({ several: true, text: true, note: true });
  expect(screen.getByRole("group", { name: /Which library\? \(choose one or more\)/ })).toBeTruthy();
  expect(screen.getAllByRole("checkbox")).toHaveLength(3);
  expect(button("Answer").disabled).toBe(true);
  fireEvent.keyDown(window, { key: "2" });
  fireEvent.keyDown(document.activeElement ?? window, { key: "1" });
  fireEvent.keyDown(document.activeElement ?? window, { key: "3" });
  const field = screen.getByLabelText("Your own answer");
  expect(document.activeElement).toBe(field);
  expect(button("Answer").disabled).toBe(true);
  fireEvent.change(field, { target: { value: "none of them" } });
  fireEvent.click(button("Answer"));
  expect(answer).toHaveBeenCalledExactlyOnceWith("1-1", { optionIds: ["answer_1", "answer_2"], text: "none of them" });
});

test("an answer that was unchecked is not sent", () => {
  const answer = choosing({ several: true });
  for (const key of ["1", "2", "1"]) fireEvent.keyDown(window, { key });
  fireEvent.click(button("Answer"));
  expect(answer).toHaveBeenCalledExactlyOnceWith("1-1", { optionId: "answer_2" });
});

test("another answer replaces a single one", () => {
  const answer = choosing({ text: true });
  expect(screen.getAllByRole("radio")).toHaveLength(3);
  fireEvent.click(screen.getByRole("radio", { name: "luxon" }));
  fireEvent.click(screen.getByTestId("answer-other"));
  fireEvent.change(screen.getByLabelText("Your own answer"), { target: { value: "dayjs" } });
  fireEvent.click(button("Answer"));
  expect(answer).toHaveBeenCalledExactlyOnceWith("1-1", { text: "dayjs" });
});

test("a question can be declined with a note", () => {
  const answer = choosing({ note: true });
  fireEvent.click(button("Decline to answer with a note…"));
  fireEvent.change(screen.getByLabelText("Note to the agent"), { target: { value: "later" } });
  fireEvent.keyDown(screen.getByLabelText("Note to the agent"), { key: "Enter" });
  expect(answer).toHaveBeenCalledExactlyOnceWith("1-1", { optionId: "reject", note: "later" });
});

test("what was answered is shown: several options, own words, and the note", () => {
  const told = new Told()
    .asked("1-1", "AskUserQuestion", survey, choices)
    .settled("1-1", { optionId: "answer_1", optionIds: ["answer_1", "answer_2"], text: "or\u202e none", by: "user" })
    .asked("1-2", "AskUserQuestion", survey, choices)
    .settled("1-2", { text: "dayjs", by: "user" })
    .asked("1-3", "Bash", {}, answers)
    .settled("1-3", { optionId: "n", note: "use ls", by: "user" });
  show(told);
  const cards = screen.getAllByTestId("question-card").map((card) => card.textContent);
  expect(cards[0]).toContain("Answered: date-fns, luxon, “or\\u{202e} none”.");
  expect(cards[1]).toContain("Answered: “dayjs”.");
  expect(cards[2]).toContain("Answered: Reject. Note to the agent: “use ls”");
});

test("what was chosen and written stays when the list does not render the row for a while, and takes no focus", () => {
  const told = new Told().asked("1-1", "AskUserQuestion", survey, choices, { accepts: { several: true, text: true, note: true } });
  const [row] = rowsOf(applyEvents(emptyTranscript, told.events).items);
  const view = (isRendered: boolean) => (
    <KeepOpen>
      <Answering value={() => new Promise(() => {})}>{row && isRendered && <RowView row={row} plain={false} />}</Answering>
    </KeepOpen>
  );
  const { rerender } = render(view(true));
  fireEvent.click(screen.getByRole("checkbox", { name: "luxon" }));
  fireEvent.click(screen.getByTestId("answer-other"));
  fireEvent.change(screen.getByLabelText("Your own answer"), { target: { value: "dayjs" } });
  fireEvent.click(button("Decline to answer with a note…"));
  fireEvent.change(screen.getByLabelText("Note to the agent"), { target: { value: "later" } });
  const again = () => {
    rerender(view(false));
    rerender(view(true));
  };
  again();
  expect(screen.getByRole<HTMLInputElement>("checkbox", { name: "luxon" }).checked).toBe(true);
  const values = ["Your own answer", "Note to the agent"].map((name) => screen.getByLabelText<HTMLInputElement>(name).value);
  expect([values, document.activeElement]).toEqual([["dayjs", "later"], document.body]);
  fireEvent.click(button("Answer"));
  again();
  expect(button("Answer").disabled).toBe(true);
});

test("what was picked and written stays if the session ends, until the question is answered", () => {
  const told = new Told().asked("1-1", "AskUserQuestion", survey, choices, { accepts: { text: true, several: true } });
  const shown = (of: Told) => (
    <AgentId value="a">
      <KeepOpen>
        <Answering value={() => Promise.resolve()}>
          {rowsOf(applyEvents(emptyTranscript, of.events).items).map((row) => (
            <RowView key={row.key} row={row} plain={false} />
          ))}
        </Answering>
      </KeepOpen>
    </AgentId>
  );
  render(shown(told));
  fireEvent.click(screen.getByLabelText(/luxon/));
  fireEvent.click(screen.getByTestId("answer-other"));
  fireEvent.change(screen.getByLabelText("Your own answer"), { target: { value: "Temporal" } });
  cleanup();
  const { rerender } = render(shown(told));
  expect(screen.getByLabelText<HTMLInputElement>(/luxon/).checked).toBe(true);
  expect(screen.getByLabelText<HTMLInputElement>("Your own answer").value).toBe("Temporal");
  expect(sessionStorage.length).toBe(2);
  rerender(shown(told.settled("1-1", { optionId: "answer_2", by: "user" })));
  expect(sessionStorage.length).toBe(0);
});
