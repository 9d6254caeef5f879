import { applyEvents, emptyTranscript } from "@tokenrail/client";
import { fireEvent, render, screen, within } from "@testing-library/react";
import { expect, test } from "vitest";

import { kindOf } from "../src/content/kind.ts";
import { KeepOpen } from "../src/conversation/kept.tsx";
import { rowsOf } from "../src/conversation/rows.ts";
import { RowView } from "../src/conversation/RowView.tsx";
import { foldsOver } from "../src/conversation/search.ts";
import { Told } from "./events.ts";

const rowsAfter = (told: Told) => rowsOf(applyEvents(emptyTranscript, told.events).items);

function show(told: Told) {
  return render(
    <KeepOpen>
      {rowsAfter(told).map((row) => (
        <RowView key={row.key} row={row} plain={false} />
      ))}
    </KeepOpen>,
  );
}

const head = () => document.querySelector(".tool-head")?.textContent;

test.each([
  ["Claude Code", "Task", { description: "Inspect notes", prompt: "**Look** around", subagent_type: "explorer" }],
  ["Claude Code", "Agent", { description: "Inspect notes", prompt: "**Look** around", subagent_type: "explorer", run_in_background: true }],
  ["opencode", "task", { description: "Inspect notes", prompt: "**Look** around", subagent_type: "explorer" }],
  ["Gemini CLI", "delegate_to_agent", { agent_name: "explorer", objective: "**Look** around" }],
  ["Codex", "spawn_agent", { agent_type: "explorer", message: "**Look** around" }],
  ["an ACP agent that names its kind", "think", { description: "Inspect notes", prompt: "**Look** around", subagent_type: "explorer" }],
])("a sub-agent of %s (%s) has its task in the head, and its prompt as folded Markdown", (_, name, input) => {
  show(new Told().call("t", name, input));
  expect(head()).toContain("description" in input ? "Inspect notes" : "**Look** around");
  expect(head()).toContain("explorer");
  expect(screen.queryByRole("group", { name: "Prompt" })).toBeNull();
  fireEvent.click(screen.getByRole("button", { name: /^Prompt/ }));
  expect(screen.getByRole("group", { name: "Prompt" }).querySelector("strong")?.textContent).toBe("Look");
  const others = [...document.querySelectorAll(".others dt")].map(({ textContent }) => textContent);
  expect(others).toEqual("run_in_background" in input ? ["run_in_background"] : []);
});

test("what a sub-agent did is grouped between its prompt and its result", () => {
  const told = new Told().call("t", "Task", { description: "Look", prompt: "Look around" });
  for (const id of ["a", "b", "c"])
    told.call(id, "Read", { file_path: id }, { parentToolCallId: "t" }).gave(id, "ok", { parentToolCallId: "t" });
  show(told.gave("t", [{ type: "text", text: "It is fine." }]));
  fireEvent.click(screen.getByRole("button", { name: /^Task/ }));
  const inner = screen.getByTestId("sub-agent");
  expect(within(inner).getByRole("button", { name: "Explored 3 files" })).toBeTruthy();
  const follows = (one: Element, other: Element) => one.compareDocumentPosition(other) === Node.DOCUMENT_POSITION_FOLLOWING;
  expect(follows(screen.getByRole("button", { name: /^Prompt/ }), inner)).toBe(true);
  expect(follows(inner, screen.getByLabelText("Output"))).toBe(true);
});

test("a search opens the prompt of a sub-agent", () => {
  const [row] = rowsAfter(new Told().call("t", "Task", { description: "Look", prompt: "find me" }));
  expect(row && foldsOver(row, "find me", false)).toContain(`${row?.key} input prompt open`);
});

test("a tool that only has a prompt is no sub-agent", () => {
  for (const [name, input] of [["draw", { prompt: "a cat" }], ["Task", {}], ["TaskStop", { task_id: "1" }]] as const)
    expect(kindOf(name, input).kind).toBe("other");
});

test.each([
  ["Claude Code", "WebFetch", { url: "https://a.example/x", prompt: "Sum it up" }, "https://a.example/x"],
  ["Claude Code", "WebSearch", { query: "rust rails" }, "rust rails"],
  ["Codex", "web_search", { query: "rust rails" }, "rust rails"],
  ["opencode", "webfetch", { url: "https://a.example/x", format: "markdown" }, "https://a.example/x"],
  ["Gemini CLI", "web_fetch", { prompt: "Sum up https://a.example/x, please" }, "https://a.example/x"],
  ["Gemini CLI", "google_web_search", { query: "rust rails" }, "rust rails"],
  ["an ACP agent", "fetch", { url: "https://a.example/x" }, "https://a.example/x"],
])("a web call of %s (%s) is one line with its URL or query, and its result is folded", (_, name, input, what) => {
  show(new Told().call("c", name, input).gave("c", "found it"));
  expect(document.querySelector(".tool-summary")?.textContent).toBe(what);
  expect(screen.queryByLabelText("Output")).toBeNull();
  fireEvent.click(screen.getByRole("button", { expanded: false }));
  expect(screen.getByLabelText("Output").textContent).toBe("found it");
  const link = screen.queryByRole<HTMLAnchorElement>("link");
  expect(link?.href).toBe(what.startsWith("https") ? what : undefined);
  expect(link?.rel ?? "noopener noreferrer nofollow").toBe("noopener noreferrer nofollow");
});

test("an address that could run a script is no link", () => {
  show(new Told().call("c", "WebFetch", { url: "javascript:alert(1)" }).gave("c", "ok"));
  fireEvent.click(screen.getByRole("button", { expanded: false }));
  expect(screen.queryByRole("link")).toBeNull();
  expect(document.querySelector(".web")?.textContent).toBe("javascript:alert(1)");
});

test("a search that the API of OpenAI ran is a call, with its query", () => {
  const block = { type: "web_search_call", id: "ws_1", action: { type: "search", query: "rust rails" }, status: "completed" };
  show(new Told().message("m", [block, { type: "text", text: "Found." }]));
  expect(screen.getByRole("group", { name: "Tool web_search: done" }).textContent).toContain("rust rails");
  expect(document.querySelector(".fact")).toBeNull();
});

test.each([
  ["pages", [{ type: "web_search_result", url: "https://a.example/x", title: "Rust" }], "done", "Rust\nhttps://a.example/x"],
  ["an error", { type: "web_search_tool_result_error", error_code: "max_uses_exceeded" }, "failed", "max_uses_exceeded"],
])("a search that the API of Anthropic ran has %s as its result", (_, content, state, output) => {
  const call = { type: "tool_use", id: "s", name: "web_search", input: { query: "rust" } };
  const result = { type: "web_search_tool_result", tool_use_id: "s", content };
  const told = new Told().message("m", [call, result, { type: "text", text: "Found it." }]);
  expect(rowsAfter(told).map(({ kind }) => kind)).toEqual(["tool", "text"]);
  show(told);
  const card = screen.getByTestId("tool-card");
  expect(card.dataset["state"]).toBe(state);
  if (state === "done") fireEvent.click(within(card).getByRole("button", { expanded: false }));
  if (state === "done") expect(within(card).getByRole("list", { name: "Results" }).textContent).toBe("Rust a.example");
  expect(within(card).getByLabelText(/^Output/, { selector: "pre" }).textContent).toBe(output);
});

test("a result without its call stays a notice", () => {
  const result = { type: "web_search_tool_result", tool_use_id: "other", content: [] };
  expect(rowsAfter(new Told().message("m", [result])).map(({ kind }) => kind)).toEqual(["notice"]);
});

test("a web search has its results as links with a title and a host, and not as JSON", () => {
  const links = [
    { title: "Duration", url: "https://doc.rust-lang.org/std/time" },
    { title: "A script", url: "javascript:alert(1)" },
  ];
  const output = `Web search results for query: "rust"\n\nLinks: ${JSON.stringify(links)}\n\nIt **panics**.\n\nREMINDER: cite the sources`;
  show(new Told().call("c", "WebSearch", { query: "rust" }).gave("c", output));
  expect(head()).toContain("2 results");
  fireEvent.click(screen.getByRole("button", { expanded: false }));
  const results = screen.getByRole("list", { name: "Results" });
  expect([...results.children].map(({ textContent }) => textContent)).toEqual(["Duration doc.rust-lang.org", "A script javascript:alert(1)"]);
  expect(within(results).getAllByRole<HTMLAnchorElement>("link").map(({ href }) => href)).toEqual(["https://doc.rust-lang.org/std/time"]);
  expect(document.querySelector(".words strong")?.textContent).toBe("panics");
  expect(document.querySelector(".words")?.textContent).toBe("It panics.");
});

test("links that cannot be read stay a text", () => {
  show(new Told().call("c", "WebSearch", { query: "rust" }).gave("c", "Links: [{]"));
  fireEvent.click(screen.getByRole("button", { expanded: false }));
  expect(screen.queryByRole("list")).toBeNull();
  expect(screen.getByLabelText("Output").textContent).toBe("Links: [{]");
});

const answering = (last: string, answer: string) =>
  new Told()
    .call("t", "Task", { description: "Look", prompt: "Look around" })
    .message("m", last, { parentToolCallId: "t" })
    .gave("t", [{ type: "text", text: answer }, { type: "text", text: "agentId: a1 (to continue it)" }]);

test("the answer of a sub-agent is there once, as Markdown", () => {
  show(answering("It is **fine**.", "It is **fine**."));
  fireEvent.click(screen.getByRole("button", { name: /^Task/ }));
  expect(screen.queryByRole("group", { name: "Answer" })).toBeNull();
  expect(within(screen.getByTestId("sub-agent")).getByText("fine").tagName).toBe("STRONG");
  expect(screen.getByLabelText("Output").closest(".detail"), "only developers see the text").toBeTruthy();
});

test("an answer that no message of the sub-agent has is shown as Markdown", () => {
  show(answering("I look.", "It is **fine**."));
  fireEvent.click(screen.getByRole("button", { name: /^Task/ }));
  expect(screen.getByRole("group", { name: "Answer" }).innerHTML).toContain("<strong>fine</strong>");
  expect(screen.getByRole("group", { name: "Answer" }).textContent).toBe("It is fine.");
});
