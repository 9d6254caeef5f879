import { fireEvent, render, screen, within } from "@testing-library/react";
import { expect, test } from "vitest";

import { shortPath } from "../src/conversation/folder.ts";
import { KeepOpen } from "../src/conversation/kept.tsx";
import { NoticeLine } from "../src/conversation/NoticeLine.tsx";
import { plainError } from "../src/conversation/plain-error.ts";
import { foldsOver } from "../src/conversation/search.ts";
import { Told } from "./events.ts";
import { rowsAfter, showRows } from "./show.tsx";

test.each([
  ["/home/me/shop/src/a.rs", "src/a.rs"],
  ["/home/me/shop", "/home/me/shop"],
  ["/home/me/shopping/a", "/home/me/shopping/a"],
  ["/home/me/shop/../secret", "/home/me/shop/../secret"],
  ["/home/me/shop//a", "/home/me/shop//a"],
  ["a", "a"],
])("the path %s of an agent in /home/me/shop is %s", (path, short) => {
  expect([shortPath(path, "/home/me/shop"), shortPath(path, "/home/me/shop/"), shortPath(path, "")]).toEqual([short, short, path]);
});

test("paths in heads and requests are relative to the folder of the agent", () => {
  const input = { file_path: "/home/me/shop/a.rs", old_string: "1", new_string: "2" };
  const told = new Told().call("r", "Read", { file_path: "/home/me/shop/b.rs" }).gave("r", "x").call("e", "Edit", input);
  showRows(told.asked("1-1", "Edit", input, []), "/home/me/shop");
  expect([...document.querySelectorAll(".tool-summary")].map(({ textContent }) => textContent)).toEqual(["b.rs", "a.rs"]);
  expect(screen.getByRole("heading").textContent).toContain("Allow Edit on a.rs?");
  expect(screen.getByTitle("/home/me/shop/a.rs").textContent).toBe("a.rs");
});

test.each([
  ["*** Begin Patch\n*** Update File: /home/me/shop/a.rs\n@@\n-1\n+2\n*** Add File: b.rs\n+x\n*** End Patch", "a.rs, b.rs"],
  ["diff --git a/src/a.rs b/src/a.rs\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n-1\n+2\n", "src/a.rs"],
  [`*** Begin Patch\n${["a", "b", "c", "d", "e"].map((name) => `*** Delete File: ${name}`).join("\n")}\n*** End Patch`, "a, b, c and 2 others"],
])("the head of the patch %j has its files", (patch, files) => {
  showRows(new Told().call("c", "apply_patch", { input: patch }), "/home/me/shop");
  expect(document.querySelector(".tool-summary")?.textContent).toBe(files);
});

const issue = {
  owner: "acme",
  labels: ["bug", "page"],
  issue_body: Array.from({ length: 60 }, (_, at) => `line ${at + 1}`).join("\n"),
  options: { draft: false, by: { name: "x" } },
  parent: null,
};

test("the input of a tool that the page does not know is a list of fields, and JSON only for developers", () => {
  showRows(new Told().call("c", "mcp__github__create_issue", issue));
  const list = document.querySelector<HTMLElement>(".input-fields");
  if (!list) throw new Error("no fields");
  const fields = [...list.children].map((field) => [...field.children].map((part) => part.textContent ?? ""));
  expect(fields.filter(([name]) => name !== "issue body")).toEqual([
    ["owner", "acme"],
    ["labels", "bug, page"],
    ["options", "draftfalsebynamex"],
    ["parent", "none"],
  ]);
  expect(list.textContent).not.toContain("line 40");
  fireEvent.click(within(list).getByRole("button", { name: /^Show all/ }));
  expect(list.textContent).toContain("line 60");
  expect(screen.getByLabelText("Input").closest(".detail")).not.toBeNull();
});

test("JSON that such a tool returns is a list of fields too, whose URLs are links", () => {
  const output = JSON.stringify({ number: 412, url: "https://example.com/412", bad: "javascript:alert(1)" });
  showRows(new Told().call("c", "mcp__github__create_issue", { title: "x" }).gave("c", output));
  fireEvent.click(screen.getByRole("button", { name: /create issue/ }));
  const list = document.querySelector(".input-fields-output .input-fields");
  expect(list?.textContent).toBe("number412urlhttps://example.com/412badjavascript:alert(1)");
  expect([...(list?.querySelectorAll("a") ?? [])].map(({ href }) => href)).toEqual(["https://example.com/412"]);
  expect(screen.getByLabelText("Output").closest(".detail")).not.toBeNull();
});

test("the search opens a field that hides what is found", () => {
  const [row] = rowsAfter(new Told().call("c", "mcp__x", { a: { text: issue.issue_body } }));
  expect(row && foldsOver(row, "line 40", false)).toContain(`${row?.key} input a text all`);
});

test.each([
  ["API Error: 529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"},\"request_id\":\"req_1\"}", "API Error: 529: Overloaded."],
  ['{"error":{"message":"no credit"}}', "No credit."],
  ['{"message":"No credit!"}', "No credit!"],
  ['Error 403: {"error":"not allowed"}', "Error 403: not allowed."],
  ["502 <html><head><title>502 Bad Gateway</title></head><body><h1>nginx</h1></body></html>", "502 502 Bad Gateway."],
  ["<!DOCTYPE html><body><script>x</script><p>Too  many\nrequests</p>", "Too many requests."],
  ["the agent exited with code 1", "The agent exited with code 1."],
  ["use {braces} or <b>", "Use {braces} or <b>."],
  ["", ""],
])("the error %j is %j", (text, words) => {
  expect(plainError(text)).toBe(words);
});

test("an error has a sentence for users and its own text for developers, and is not said twice", () => {
  const text = 'API Error: 529 {"error":{"message":"Overloaded"}}';
  showRows(new Told().message("a", "Hello").message("b", text).failed(text, { class: "overloaded", code: "no_result" }));
  const card = screen.getByTestId("error-card");
  expect(within(card).getByTestId("error-text").textContent).toBe("API Error: 529: Overloaded.");
  expect(within(card).getByText(text).className).toContain("detail");
  expect(screen.getAllByTestId("row-text").map((row) => row.querySelector(".words")?.textContent)).toEqual(["Hello"]);
});

test("what a tool says about an edit or a to-do list that succeeded is only for developers", () => {
  const edit = { file_path: "a", old_string: "1", new_string: "2" };
  const told = new Told()
    .call("e", "Edit", edit)
    .gave("e", "The file a has been updated successfully.")
    .call("f", "Edit", edit)
    .gave("f", "The file a was changed by somebody else.")
    .call("t", "TodoWrite", { todos: [{ content: "Run `cargo test` **now**", status: "pending" }] })
    .gave("t", "Todos have been modified successfully.");
  showRows(told);
  const isForUsers = (output: HTMLElement) => output.closest(".detail") === null;
  expect(screen.getAllByLabelText("Output").map(isForUsers)).toEqual([false, true, false]);
  const [todo] = within(screen.getByRole("list", { name: "To-do list" })).getAllByRole("listitem");
  expect(todo?.querySelector("code")?.textContent).toBe("cargo test");
  expect(todo?.textContent).toBe("Run cargo test now");
});

test("a call that nobody allowed in time does not say that the user rejected it", () => {
  const answers = [{ optionId: "n", name: "Reject", kind: "reject_once" }];
  showRows(
    new Told()
      .call("c", "Bash", { command: "ls" })
      .asked("1-1", "Bash", { command: "ls" }, answers, { toolCallId: "c" })
      .settled("1-1", { optionId: "n", by: "timeout" })
      .gave("c", "The user rejected this action.", { isError: true }),
  );
  expect(screen.getByLabelText("What the agent was told").closest(".detail")).not.toBeNull();
});

test("the time in which a call waits for the user is not its time", () => {
  const answers = [{ optionId: "y", name: "Allow", kind: "allow_once" }];
  showRows(
    new Told(1_000)
      .call("c", "Bash", { command: "ls" })
      .asked("1-1", "Bash", { command: "ls" }, answers, { toolCallId: "c" })
      .prompt("one more")
      .prompt("and another")
      .settled("1-1", { optionId: "y", by: "user" })
      .gave("c", "ok"),
  );
  expect(document.querySelector(".took")?.textContent).toBe("2.0 s");
});

test("a command of several lines is headed by its first line", () => {
  showRows(new Told().call("c", "Bash", { command: "git diff --stat && \\\n  git status" }));
  expect(document.querySelector(".tool-summary")?.textContent).toBe("git diff --stat …");
});

test("a page that was fetched has characters, and not one line", () => {
  showRows(new Told(1).call("c", "WebFetch", { url: "https://example.com", prompt: "?" }).gave("c", "All is well."));
  expect(document.querySelector(".tool-head .fact")?.textContent).toBe("12 characters");
});

const question = (text: string, header: string) => ({ question: text, header, options: [{ label: "a" }, { label: "b" }] });
const choices = [
  { optionId: "1", name: "a", kind: "allow_once" },
  { optionId: "2", name: "b", kind: "allow_once" },
];

test("the second question of a call says which one it is, and what was answered before", () => {
  const [first, second] = [question("Which database?", "Database"), question("Which port?", "Port")];
  showRows(
    new Told()
      .call("c", "AskUserQuestion", { questions: [first, second] })
      .asked("1-1", "AskUserQuestion", first, choices, { toolCallId: "c" })
      .settled("1-1", { optionId: "2", by: "user" })
      .asked("1-2", "AskUserQuestion", second, choices, { toolCallId: "c" }),
  );
  expect(screen.getByLabelText("Earlier answers").textContent).toBe("Database:b");
  expect(document.querySelector("legend")?.textContent).toContain("2 of 2 Port Which port?");
});

test.each([
  ["message_delta", { usage: { input_tokens: 1 } }, true],
  ["message_delta", { status: "waiting" }, false],
  ["status", {}, false],
])("the notice %s with %j is hidden from users: %s", (name, data, isHidden) => {
  const row = { key: "k", kind: "notice", sequence: 1, time: "", type: "", name, data } as const;
  render(
    <KeepOpen>
      <NoticeLine row={row} />
    </KeepOpen>,
  );
  expect(document.querySelector(".notice")?.hasAttribute("data-empty")).toBe(isHidden);
});

test("a cell of a table that is one word or only numbers is not broken", () => {
  showRows(new Told().message("m", "| a | b | c |\n| - | - | - |\n| +12/−0 | two words | +1 −2 |\n"));
  expect([...document.querySelectorAll("td")].map((cell) => cell.hasAttribute("data-whole"))).toEqual([true, false, true]);
});

test("what a program printed before it crashed is shown as it was printed", () => {
  const printed = "panicked at src/main.rs:10:5:\n  note: run with `RUST_BACKTRACE=1`";
  const error = { class: "process", code: "no_result", recoverable: false };
  showRows(new Told().failed(`the agent exited with code 134 without a result: ${printed}`, error));
  const text = screen.getByTestId("error-text");
  expect(text.querySelector("pre")?.textContent).toBe(printed);
  expect(text.firstChild?.textContent).toBe("The agent exited with code 134 without a result.");
});
