import { applyEvents, emptyTranscript } from "@tokenrail/client";
import { render, screen, within } from "@testing-library/react";
import { expect, test } from "vitest";

import { howEnded } from "../src/agent/StatusBadge.tsx";
import { nameOf } from "../src/content/name.ts";
import { KeepOpen } from "../src/conversation/kept.tsx";
import { rowsOf } from "../src/conversation/rows.ts";
import { RowView } from "../src/conversation/RowView.tsx";
import { Told } from "./events.ts";

function show(told: Told) {
  return render(
    <KeepOpen>
      {rowsOf(applyEvents(emptyTranscript, told.events).items).map((row) => (
        <RowView key={row.key} row={row} plain={false} />
      ))}
    </KeepOpen>,
  );
}

const answers = [
  { optionId: "y", name: "Allow", kind: "allow_once" },
  { optionId: "n", name: "Reject", kind: "reject_once" },
];
const asking = (more: object) =>
  new Told()
    .call("c", "Bash", { command: "rm -r build" })
    .asked("1-1", "Bash", { command: "rm -r build" }, answers, { toolCallId: "c" })
    .settled("1-1", { optionId: "n", ...more })
    .gave("c", "The user rejected this action.", { isError: true });

test("a request that nobody answered in time is neither a failure nor a rejection by the user", () => {
  show(asking({ by: "timeout" }));
  const card = screen.getByTestId("tool-card");
  expect(card.getAttribute("aria-label")).toBe("Tool Bash: not answered in time");
  expect(within(card).queryByLabelText("Output of the failed call")).toBeNull();
  expect(within(card).getByLabelText("What the agent was told").textContent).toContain("The user rejected this action.");
});

test("a call that the user rejects did not fail", () => {
  show(asking({ by: "user" }));
  expect(screen.getByTestId("tool-card").dataset["state"]).toBe("rejected");
});

test("a call that was allowed and fails has failed", () => {
  show(asking({ by: "user", optionId: "y" }));
  expect(screen.getByTestId("tool-card").dataset["state"]).toBe("failed");
});

test("a request about a plan names no tool", () => {
  show(new Told().asked("1-1", "ExitPlanMode", { plan: "1. Look" }, answers));
  expect(screen.getByRole("heading").textContent).toBe("Approve the plan?");
});

test("a question of the agent is no permission request", () => {
  const input = { question: "Which?", header: "Library", options: [{ label: "a" }] };
  const { container } = show(new Told().asked("1-1", "AskUserQuestion", input, [{ optionId: "1", name: "a", kind: "allow_once" }]));
  expect([screen.getByRole("article").getAttribute("aria-label"), container.querySelector(".row-kind")?.textContent]).toEqual(["Question", "Question"]);
  expect(screen.queryByLabelText("Permission request")).toBeNull();
});

test.each([
  ["TodoWrite", "To-do list"],
  ["MultiEdit", "Edit"],
  ["mcp__github__create_issue", "github: create issue"],
  ["Bash", "Bash"],
  ["CronCreate", "Cron create"],
  ["ACPThing", "ACPThing"],
  ["constructor", "constructor"],
])("the tool %s is called %s", (tool, name) => {
  expect(nameOf(tool)).toBe(name);
});

test("the card of a tool has its name in words, and the real name as a title", () => {
  show(new Told().call("c", "mcp__github__create_issue", { owner: "acme", title: "It is broken\nbadly" }).gave("c", "ok"));
  const name = screen.getByTitle("mcp__github__create_issue");
  expect(name.textContent).toBe("github: create issue");
  expect(name.nextElementSibling?.textContent).toBe("It is broken …");
});

test("a picture that was read has no lines", () => {
  const picture = { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" } };
  show(new Told().call("c", "Read", { file_path: "a.png" }).gave("c", [picture]));
  expect(document.querySelector(".fact")?.textContent).toBe("1 image");
});

test.each([
  ["cancelled", "Cancelled before it was complete."],
  ["failed", "Cut off by an error."],
  ["interrupted", "Cut off because the turn was interrupted."],
])("a message that was %s says so in words", (outcome, words) => {
  const { container } = show(new Told().message("m", "The begi", { outcome }));
  expect(container.querySelector(".cut-short")?.textContent).toBe(words);
});

test("a plan that was approved says so once", () => {
  const told = new Told().call("c", "ExitPlanMode", { plan: "1. Look" }).asked("1-1", "ExitPlanMode", { plan: "1. Look" }, answers, { toolCallId: "c" });
  show(told.settled("1-1", { optionId: "y", by: "user" }).gave("c", "User has approved your plan."));
  expect(screen.getByTestId("settled").textContent).toBe("Plan approved.");
  expect(screen.getByLabelText("Output").closest(".detail"), "only developers see what the agent was told").toBeTruthy();
});

test("an approved plan of an imported agent, whose request is not known, says so and is not repeated", () => {
  const { container } = show(new Told().call("c", "ExitPlanMode", { plan: "1. Look" }).gave("c", "User has approved your plan. Start.\n\n1. Look"));
  expect(screen.getByText("Plan approved.")).toBeTruthy();
  expect(screen.getByLabelText("Output").closest(".detail")).toBeTruthy();
  expect(container.querySelector(".io:not(.detail *)")).toBeNull();
});

test.each([
  ["completed", "has completed"],
  ["failed", "has failed"],
  ["cancelled", "was cancelled"],
  ["interrupted", "was interrupted"],
] as const)("a screen reader hears that an agent %s", (status, words) => {
  expect(howEnded(status)).toBe(words);
});
