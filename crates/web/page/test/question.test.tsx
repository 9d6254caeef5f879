import { applyEvents, emptyTranscript } from "@tokenrail/client";
import { act, fireEvent, render, screen, within } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";

import { type Answer, Answering } from "../src/conversation/answering.ts";
import { KeepOpen } from "../src/conversation/kept.tsx";
import { rowsOf } from "../src/conversation/rows.ts";
import { RowView } from "../src/conversation/RowView.tsx";
import { Told } from "./events.ts";

const answers = [
  { optionId: "y", name: "Allow", kind: "allow_once" },
  { optionId: "n", name: "Reject", kind: "reject_once" },
];

function show(told: Told, answer?: Answer) {
  return render(view(told, answer));
}

function view(told: Told, answer?: Answer) {
  return (
    <KeepOpen>
      <Answering value={answer}>
        {rowsOf(applyEvents(emptyTranscript, told.events).items).map((row) => (
          <RowView key={row.key} row={row} plain={false} />
        ))}
      </Answering>
    </KeepOpen>
  );
}

/** A question with this input, which somebody may answer. */
function ask(input: unknown) {
  return show(new Told().asked("1-1", "Bash", input, answers), () => Promise.resolve());
}

function button(name: string): HTMLButtonElement {
  return screen.getByRole("button", { name });
}

/** What is to be seen of the input: the name and the text of each field. */
function given(): string[][] {
  const fields = screen.getByLabelText("Input").querySelectorAll("dl > div");
  return [...fields].map((field) => [...field.children].map((part) => part.textContent ?? ""));
}

/** Has every box be so high, of which 480 pixels are seen. */
function boxesAreHigh(scrollHeight: number): void {
  vi.spyOn(Element.prototype, "scrollHeight", "get").mockReturnValue(scrollHeight);
  vi.spyOn(Element.prototype, "clientHeight", "get").mockReturnValue(480);
}

afterEach(() => vi.restoreAllMocks());

test("a question has a button for each answer, and tells what became of it", async () => {
  const told = new Told().asked("1-1", "Bash", { command: "rm -r build" }, answers);
  const answer = vi.fn(() => Promise.reject(new Error("the permission request 1-1 is no longer open")));
  const asked = show(told, answer);
  expect(screen.getByTestId("question-card").textContent).toContain("Allow Bash?");
  expect([screen.getByLabelText("Input").textContent, given()]).toEqual(["rm -r build", []]);
  fireEvent.click(button("Reject"));
  expect(answer).toHaveBeenCalledWith("1-1", { optionId: "n" });
  expect(button("Allow once").disabled).toBe(true);
  expect((await screen.findByRole("alert")).textContent).toBe("The permission request 1-1 is no longer open.");
  asked.unmount();

  const looked = show(told);
  expect(screen.queryByRole("button", { name: "Allow once" })).toBeNull();
  looked.unmount();
  show(told.settled("1-1", { optionId: "y", by: "user" }));
  expect(screen.getByTestId("question-card").textContent).toContain("Answered: Allow once.");
});

test("an open question says until when it waits, and what is chosen then", () => {
  vi.useFakeTimers({ now: Date.parse("2026-11-22T06:42:10.000Z") });
  const until = { expiresAt: "2026-11-22T06:43:12.000Z", defaultOptionId: "n" };
  const told = new Told().asked("1-1", "Bash", {}, answers, until);
  const shown = show(told, () => Promise.resolve());
  const countdown = () => screen.getByTestId("countdown").querySelector("[aria-hidden]")?.textContent;
  expect(countdown()).toBe("If nobody answers, “Reject” will be chosen in 1 min 02 s.");
  const heard = () => screen.getByTestId("countdown").querySelector(".unseen")?.textContent;
  const before = heard();
  expect(before).toContain("If nobody answers, “Reject” will be chosen at ");
  act(() => vi.advanceTimersByTime(3_000));
  expect([countdown(), heard()]).toEqual(["If nobody answers, “Reject” will be chosen in 59 s.", before]);
  act(() => vi.advanceTimersByTime(60_000));
  expect(countdown()).toBe("Time is up: “Reject” is being chosen.");
  shown.rerender(view(told.settled("1-1", { optionId: "n", by: "timeout" }), () => Promise.resolve()));
  expect(screen.queryByTestId("countdown")).toBeNull();
  vi.useRealTimers();
});

test("a question without an option to choose is dismissed, and an older server does not say when", () => {
  const until = { expiresAt: "2999-11-22T06:43:12.000Z" };
  const told = new Told().asked("1-1", "Bash", {}, answers, until).asked("1-2", "Bash", {}, answers);
  show(told, () => Promise.resolve());
  const countdowns = screen.getAllByTestId("countdown").map((countdown) => countdown.textContent);
  expect(countdowns.length).toBe(1);
  expect(countdowns[0]).toContain("If nobody answers, the request will be dismissed in ");
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
  expect(late).toContain("Timed out without an answer; the default was chosen: Reject.");
  expect(closed).toContain("The turn ended before the request was answered.");
});

test.each([
  [
    { command: "echo ok", description: "Say ok", dangerouslyDisableSandbox: true },
    [["dangerouslyDisableSandbox", "true"]],
  ],
  [
    { threadId: "t", reason: "needs the net", command: "curl x", cwd: "/srv", empty: "", none: null },
    [["threadId", "t"], ["reason", "needs the net"], ["cwd", "/srv"], ["empty", '""'], ["none", "null"]],
  ],
  [{ file_path: "a.sh", content: "rm x\n", mode: "0777" }, [["mode", "0777"]]],
  [
    { file_path: "a", old_string: "1", new_string: "2", replace_all: true, command: "rm x" },
    [["replace_all", "true"], ["command", "rm x"]],
  ],
  [
    { file_path: "a", edits: [{ old_string: "1", new_string: "2", replace_all: true }] },
    [["edits", JSON.stringify([{ old_string: "1", new_string: "2", replace_all: true }], null, 2)]],
  ],
  [{ plan: "# Do it", command: "rm x" }, [["plan", "# Do it"]]],
  [{ path: "/etc" }, [["path", "/etc"]]],
  [{ command: ["rm", "a b"] }, [["command", JSON.stringify(["rm", "a b"], null, 2)]]],
  [{ command: "ls", description: "Look\nand more" }, [["description", "Look\nand more"]]],
  [["a", { b: 1 }], [["input", JSON.stringify(["a", { b: 1 }], null, 2)]]],
])("a question shows every field of %j that is not shown otherwise", (input, expected) => {
  ask(input);
  expect(given()).toEqual(expected);
});

test("the headline of a question is not what the agent says of it, which is quoted", () => {
  ask({ command: "rm -rf ~", description: "List the \u202efiles" });
  const card = within(screen.getByTestId("question-card"));
  expect(card.getByRole("heading").textContent).toBe("Allow Bash?");
  expect(card.getByText(/^The agent says/).textContent).toBe("The agent says: “List the \\u{202e}files”");
  expect(screen.getByLabelText("Input").textContent).toBe("rm -rf ~");
});

test("what does not fit on the screen is allowed only when its beginning has been seen too", () => {
  vi.useFakeTimers();
  let top = -300;
  vi.spyOn(Element.prototype, "getBoundingClientRect").mockImplementation(() => new DOMRect(0, top, 300, 900));
  show(new Told().asked("1-1", "Bash", { command: "rm -rf ~" }, answers), () => Promise.resolve());
  const box = screen.getByLabelText("Input");
  const scrolledTo = (next: number, forMs: number) => {
    top = next;
    fireEvent.scroll(box);
    act(() => vi.advanceTimersByTime(forMs));
    return button("Allow once").disabled;
  };
  // The end is in view, but the beginning is above the screen.
  expect(button("Allow once").disabled).toBe(true);
  expect(screen.getByRole("status").textContent).toBe("Before you can allow this, scroll to the top, then to the end.");
  // The list passes the beginning on its way to its end.
  expect([scrolledTo(20, 10), scrolledTo(-300, 1_000)]).toEqual([true, true]);
  expect(scrolledTo(20, 1_000)).toBe(true);
  expect(screen.getByRole("status").textContent).toBe("Before you can allow this, scroll to the end.");
  expect(scrolledTo(-300, 0)).toBe(false);
  vi.useRealTimers();
});

test("a request that is shown from its top can be allowed as soon as the user has scrolled to its end", () => {
  let top = 20;
  vi.spyOn(Element.prototype, "getBoundingClientRect").mockImplementation(() => new DOMRect(0, top, 300, 900));
  show(new Told().asked("1-1", "Bash", { command: "rm -rf ~" }, answers), () => Promise.resolve());
  expect(screen.getByRole("status").textContent).toBe("Before you can allow this, scroll to the end.");
  expect(button("Allow once").disabled).toBe(true);
  const box = screen.getByLabelText("Input");
  fireEvent.touchStart(box, { touches: [{ clientY: 390 }] });
  top = -300;
  fireEvent.scroll(box);
  expect(button("Allow once").disabled).toBe(false);
});

test.each([
  ["Always allow Bash(rm:*) (for this session)", "Always allow commands that begin with “rm” (for this session)"],
  ["Always allow Bash(npm test:*) (saved in localSettings)", "Always allow commands that begin with “npm test” (for this folder, on the server's machine)"],
  ["Always allow Bash(git diff) (for this session)", "Always allow the command “git diff” (for this session)"],
  ["Always allow Bash(rm:*), Bash(ls) (for this session)", "Always allow Bash(rm:*), Bash(ls) (for this session)"],
  ["Always allow Bash(a*b) (for this session)", "Always allow Bash(a*b) (for this session)"],
  ["Always allow edits (for this session)", "Always allow edits (for this session)"],
])("the option %j is called %j", (name, label) => {
  show(new Told().asked("1-1", "Bash", { command: "ls" }, [{ optionId: "a", name, kind: "allow_always" }]), () => Promise.resolve());
  expect(screen.getByTestId("answer-allow_always").textContent).toBe(`1${label}`);
});

test("nothing of a question is cut, and nothing hides in it", () => {
  const command = `${"\n".repeat(3_000)}echo \u202e\u200bno\u001b[2K${"x".repeat(30_000)}; rm -rf ~`;
  ask({ command });
  const shown = screen.getByLabelText("Input").querySelector("code")?.textContent ?? "";
  expect(shown.startsWith("\n".repeat(3_000))).toBe(true);
  expect(shown).toContain("echo \\u{202e}\\u{200b}no\\u{1b}[2K");
  expect(shown.endsWith("; rm -rf ~")).toBe(true);
});

test("what does not fit into its box is allowed only when its end has been seen", () => {
  boxesAreHigh(600);
  ask({ command: `${"\n".repeat(30)}rm -rf ~` });
  expect([button("Allow once").disabled, button("Reject").disabled]).toEqual([true, false]);
  expect(screen.getByRole("status").textContent).toBe("Before you can allow this, scroll to the end.");
  const box = screen.getByLabelText("Input");
  box.scrollTop = 60;
  fireEvent.scroll(box);
  expect(button("Allow once").disabled).toBe(true);
  box.scrollTop = 120;
  fireEvent.scroll(box);
  expect(button("Allow once").disabled).toBe(false);
  expect(screen.queryByRole("status")).toBeNull();
});

test("what fits into its box can be allowed at once", () => {
  boxesAreHigh(480);
  ask({ command: "ls" });
  expect(button("Allow once").disabled).toBe(false);
});
