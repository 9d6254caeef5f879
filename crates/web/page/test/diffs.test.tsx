import { fireEvent, screen, waitFor } from "@testing-library/react";
import { expect, test, vi } from "vitest";

import { foldsOver } from "../src/conversation/search.ts";
import { Told } from "./events.ts";
import { rowsAfter, showRows } from "./show.tsx";

const change = { file_path: "src/a.rs", old_string: 'let a = "one";\n// end\n', new_string: 'let a = "two";\n// end\n' };

/** The coloured words of the lines with this mark. */
function coloured(mark: string): string[][] {
  const words = document.querySelectorAll(`.diff-line[data-mark="${mark}"] [class^="hljs-"]`);
  return [...words].map((word) => [word.className, word.textContent ?? ""]);
}

test("the lines of a change have the colours of their language, also in the words that have changed", async () => {
  showRows(new Told().call("c", "Edit", change));
  await waitFor(() => expect(coloured("+")).not.toEqual([]));
  expect(coloured("+")).toEqual([
    ["hljs-keyword", "let"],
    ["hljs-variable", "a"],
    ["hljs-string", '"'],
    ["hljs-string", "two"],
    ["hljs-string", '"'],
  ]);
  expect(coloured(" ")).toEqual([["hljs-comment", "// end"]]);
  expect([...document.querySelectorAll("mark")].map(({ textContent }) => textContent)).toEqual(["one", "two"]);
  expect(screen.getByLabelText("Changes").textContent).toBe('-let a = "one";\n+let a = "two";\n // end\n');
});

test("a change that is asked for has colours too", async () => {
  showRows(new Told().asked("1-1", "Edit", change, []));
  await waitFor(() => expect(coloured("-")).toContainEqual(["hljs-keyword", "let"]));
});

test("a patch has the colours of each of its files, and is as it was written", async () => {
  const patch = "*** Begin Patch\n*** Update File: a.rs\n@@ fn a\n-let a;\n+let b;\n*** Add File: b.py\n+import os\n*** End Patch";
  showRows(new Told().call("c", "apply_patch", { input: patch }));
  const words = () => [...document.querySelectorAll(".patch-line .hljs-keyword")].map(({ textContent }) => textContent);
  await waitFor(() => expect(words()).toEqual(["let", "let", "import"]));
  expect(screen.getByLabelText("Input").textContent).toBe(patch);
});

test("HTML in a coloured change stays text", async () => {
  const html = '<img src=x onerror="window.hit = 1"><script>window.hit = 1</script>\n';
  showRows(new Told().call("c", "Write", { file_path: "a.html", content: html }));
  await waitFor(() => expect(coloured("+")).not.toEqual([]));
  expect(document.querySelector(".diff img, .diff script")).toBeNull();
  expect(document.querySelector(".diff-text")?.textContent).toBe(html);
});

test("a change in an unknown language has no colours, and of a long one only the beginning has", async () => {
  const unknown = { file_path: "c.unknown", content: "let a = 1;\n" };
  const long = { file_path: "b.rs", content: "let a = 1;\n".repeat(1_200) };
  showRows(new Told().call("a", "Write", unknown).call("b", "Write", long));
  const keywords = () => coloured("+").filter(([name]) => name === "hljs-keyword").length;
  // Only what is shown has colours.
  await waitFor(() => expect(keywords()).toBe(40));
  fireEvent.click(screen.getByRole("button", { name: /^Show .* more lines$/ }));
  await waitFor(() => expect(keywords()).toBe(909));
  expect(document.querySelectorAll(".diff-line")).toHaveLength(1_201);
});

const numbered = (count: number) => Array.from({ length: count }, (_, at) => `line ${at + 1}`).join("\n");

test("one or two unchanged lines are not hidden", () => {
  const text = numbered(20);
  const input = (before: string) => ({ file_path: "a", old_string: text, new_string: text.replace(`${before}\n`, `x\n`).replace("line 16", "y") });
  const first = showRows(new Told().call("c", "Edit", input("line 7")));
  expect([...document.querySelectorAll(".diff-gap")].map(({ textContent }) => textContent)).toEqual(["⋯ 3 lines\n"]);
  first.unmount();
  // Here, two lines are between the changes, and one is at the end.
  const other = text.replace("line 9\n", "x\n").replace("line 16", "y");
  showRows(new Told().call("c", "Edit", { file_path: "a", old_string: text, new_string: other }));
  expect([...document.querySelectorAll(".diff-gap")].map(({ textContent }) => textContent)).toEqual(["⋯ 5 lines\n"]);
});

test("a card with several changes has one switch for their layout", () => {
  const width = vi.spyOn(Element.prototype, "clientWidth", "get").mockReturnValue(760);
  const edits = [{ old_string: "1", new_string: "2" }, { old_string: "3", new_string: "4" }];
  showRows(new Told().call("c", "MultiEdit", { file_path: "a", edits }));
  fireEvent.click(screen.getByRole("button", { name: "Split" }));
  expect(screen.getAllByLabelText("Changes").map((diff) => diff.dataset["layout"])).toEqual(["split", "split"]);
  width.mockRestore();
  localStorage.clear();
});

/** The numbers of the lines of all changes. */
const numbers = () => [...document.querySelectorAll(".diff-number")].map(({ textContent }) => Number(textContent));

const read = (text: string, first = 1) =>
  text.split("\n").map((line, at) => `${String(first + at).padStart(6)}→${line}`).join("\n");
const file = "alpha\nbeta\ngamma\ndelta";

test("the lines of an edit have the numbers that the file had when it was read", () => {
  showRows(
    new Told()
      .call("r", "Read", { file_path: "/w/a" })
      .gave("r", `${read(file, 11)}\n\n<system-reminder>\nBe careful.\n</system-reminder>`)
      .call("e", "Edit", { file_path: "/w/a", old_string: "beta", new_string: "b\nB" })
      .gave("e", "ok")
      .call("f", "Edit", { file_path: "/w/a", old_string: "gamma\ndelta", new_string: "g\ndelta" }),
  );
  // The first edit has added a line.
  expect(numbers()).toEqual([12, 12, 13, 14, 14, 15]);
});

test("the lines of several edits, and of a file that was written, have numbers", () => {
  const edits = [{ old_string: "alpha\n", new_string: "" }, { old_string: "delta", new_string: "d" }];
  showRows(
    new Told()
      .call("w", "Write", { file_path: "a", content: file })
      .gave("w", "ok")
      .call("e", "MultiEdit", { file_path: "a", edits }),
  );
  expect(numbers()).toEqual([1, 2, 3, 4, 1, 3, 3]);
});

test("the numbers that the result of an edit has count", () => {
  const said = `The file a has been updated. Here's the result of running \`cat -n\` on a snippet:\n${read("x\ntwo\ny", 40)}`;
  showRows(new Told().call("e", "Edit", { file_path: "a", old_string: "one", new_string: "two" }).gave("e", said));
  expect(numbers()).toEqual([41, 41]);
});

test.each([
  ["was not read", new Told()],
  ["has the text at several places", new Told().call("r", "Read", { file_path: "a" }).gave("r", read("one\none"))],
  ["was read before an unknown edit", new Told().call("r", "Read", { file_path: "a" }).gave("r", read("one")).call("x", "Edit", { file_path: "a", old_string: "?", new_string: "!" }).gave("x", "ok")],
  ["could not be read", new Told().call("r", "Read", { file_path: "a" }).gave("r", read("one"), { isError: true })],
  ["is another one", new Told().call("r", "Read", { file_path: "b" }).gave("r", read("one"))],
])("an edit of a file that %s has no numbers", (_, told) => {
  showRows(told.call("e", "Edit", { file_path: "a", old_string: "one", new_string: "two" }));
  expect(numbers()).toEqual([]);
});

const head = "--- /w/a.rs\n+++ /w/a.rs\n";
const hunk = "@@ -41,3 +41,4 @@\n before\n-one\n+two\n+three\n after\n";
const edit = { file_path: "/w/a.rs", old_string: "one\n", new_string: "two\nthree\n" };

test("an edit has the numbers and the lines around it that its result reports", async () => {
  showRows(new Told().call("e", "Edit", edit).gave("e", "ok", { patch: head + hunk }));
  expect(screen.getByLabelText("Changes").textContent).toBe("41 before\n42-one\n42+two\n43+three\n44 after\n");
  expect(document.querySelector(".counts")?.textContent).toBe("+2 −1");
});

test("an edit looks as before until its result is there, and if the result has no patch", () => {
  const running = showRows(new Told().call("e", "Edit", edit));
  expect(screen.getByLabelText("Changes").textContent).toBe("-one\n+two\n+three\n");
  running.unmount();
  showRows(new Told().call("e", "Edit", edit).gave("e", "ok", { patch: "not a patch" }));
  expect(screen.getByLabelText("Changes").textContent).toBe("-one\n+two\n+three\n");
});

test("side by side, the old and the new lines have numbers of their own", () => {
  const width = vi.spyOn(Element.prototype, "clientWidth", "get").mockReturnValue(760);
  showRows(new Told().call("e", "Edit", edit).gave("e", "ok", { patch: head + hunk }));
  fireEvent.click(screen.getByRole("button", { name: "Split" }));
  const pairs = [...document.querySelectorAll(".diff-pair")].map((pair) =>
    [...pair.querySelectorAll(".diff-line")].map((line) => line.querySelector(".diff-number")?.textContent),
  );
  expect(pairs).toEqual([["41", "41"], ["42", "42"], [undefined, "43"], ["43", "44"]]);
  width.mockRestore();
  localStorage.clear();
});

test("a removed line that looks like the name of a file is a line, and words that changed are marked", () => {
  const sql = "--- q.sql\n+++ q.sql\n@@ -7,2 +7,2 @@\n--- old name\n+-- new name\n x\n";
  const input = { file_path: "q.sql", old_string: "-- old name", new_string: "-- new name" };
  showRows(new Told().call("e", "Edit", input).gave("e", "ok", { patch: sql }));
  expect(screen.getByLabelText("Changes").textContent).toBe("7--- old name\n7+-- new name\n8 x\n");
  expect([...document.querySelectorAll("mark")].map(({ textContent }) => textContent)).toEqual(["old", "new"]);
});

test("a file that was written again is compared with its old content", () => {
  const input = { file_path: "/w/a.rs", content: "before\ntwo\nthree\nafter\n" };
  showRows(new Told().call("w", "Write", input).gave("w", "ok", { patch: head + hunk }));
  expect(numbers()).toEqual([41, 42, 42, 43, 44]);
});

test("each place of several edits is shown with its numbers", () => {
  const edits = [{ old_string: "one\n", new_string: "two\nthree\n" }, { old_string: "x", new_string: "y" }];
  const patch = `${head}${hunk}@@ -90,1 +91,1 @@\n-x\n+y\n`;
  showRows(new Told().call("m", "MultiEdit", { file_path: "/w/a.rs", edits }).gave("m", "ok", { patch }));
  expect(screen.getAllByLabelText("Changes")).toHaveLength(2);
  expect(numbers()).toEqual([41, 42, 42, 43, 44, 90, 91]);
});

test("a patch of several files has their names and the numbers of their lines", () => {
  const changes = [
    { path: "/w/a.rs", kind: { type: "update" }, diff: hunk },
    { path: "/w/b.py", kind: { type: "add" }, diff: "import os\n" },
  ];
  const patch = `${head}${hunk}--- /dev/null\n+++ /w/b.py\n@@ -0,0 +1,1 @@\n+import os\n`;
  showRows(new Told().call("p", "fileChange", { changes }).gave("p", "completed", { patch }), "/w");
  expect(numbers()).toEqual([41, 42, 42, 43, 44, 1]);
  expect([...document.querySelectorAll(".edit .hint")].map(({ textContent }) => textContent)).toEqual(["a.rs", "b.py (added)"]);
});

test("the search opens a change whose lines, as its result reports them, are folded", () => {
  const patch = `--- /w/a\n+++ /w/a\n@@ -9,1 +9,61 @@\n before\n${"+x\n".repeat(59)}+last\n`;
  const told = new Told().call("e", "Edit", { file_path: "/w/a", old_string: "", new_string: "last" }).gave("e", "ok", { patch });
  const [row] = rowsAfter(told);
  expect(row && foldsOver(row, "last", false)).toContain(`${row?.key} diff 0 all`);
});
