import { applyEvents, emptyTranscript } from "@tokenrail/client";
import { expect, test } from "vitest";

import { type CalledFile, changingCalls, filesOfCalls, patchOfCalls } from "../src/conversation/changes/called.ts";
import { rowsOf } from "../src/conversation/rows.ts";
import { Told } from "./events.ts";

/** The files after these calls, each with its name and its input. */
function filesAfter(...calls: readonly (readonly [name: string, input: object])[]): CalledFile[] {
  const told = new Told();
  calls.forEach(([name, input], at) => told.call(`${at}`, name, input).gave(`${at}`, "ok"));
  return filesOfCalls(changingCalls(rowsOf(applyEvents(emptyTranscript, told.events).items)), "/project");
}

const statuses = (files: readonly CalledFile[]) => files.map(({ path, status }) => `${status} ${path}`);

/** The lines of the patch, without its frame. */
const linesOf = (files: readonly CalledFile[]) => patchOfCalls(files).text.split("\n").slice(1, -2);

const deletion = ["apply_patch", { input: "*** Begin Patch\n*** Delete File: x\n*** End Patch" }] as const;

test.each([
  ["a patch that adds it", [["apply_patch", { input: "*** Begin Patch\n*** Add File: x\n+new\n*** End Patch" }]]],
  ["a write", [["Write", { file_path: "/project/x", content: "new\n" }]]],
  ["an edit of nothing", [["Edit", { file_path: "/project/x", old_string: "", new_string: "new\n" }]]],
] as const)("a file that is deleted and created again by %s exists, and its patch says so", (_, calls) => {
  const files = filesAfter(deletion, ...calls);
  expect(statuses(files)).toEqual(["modified x"]);
  expect(linesOf(files)).toEqual(["*** Delete File: x", "*** Add File: x", "+new"]);
});

test.each([
  ["an edit", ["Edit", { file_path: "x", old_string: "two", new_string: "2" }]],
  ["a patch", ["apply_patch", { input: "*** Begin Patch\n*** Update File: x\n@@\n one\n-two\n+2\n*** End Patch" }]],
] as const)("a new file that %s changes is added with its last content", (_, call) => {
  const files = filesAfter(["Write", { file_path: "x", content: "one\ntwo\n" }], call);
  expect(statuses(files)).toEqual(["added x"]);
  expect(linesOf(files)).toEqual(["*** Add File: x", "+one", "+2"]);
});

test("a file that is written after an edit is replaced by its last content", () => {
  const files = filesAfter(
    ["Edit", { file_path: "x", old_string: "two", new_string: "2" }],
    ["Write", { file_path: "x", content: "all\n" }],
  );
  expect(linesOf(files)).toEqual(["*** Delete File: x", "*** Add File: x", "+all"]);
});

test("a replacement everywhere is left out of the patch, because its places are not known", () => {
  const files = filesAfter(["Edit", { file_path: "x", old_string: "a", new_string: "b", replace_all: true }]);
  expect(statuses(files)).toEqual(["modified x"]);
  expect(patchOfCalls(files)).toEqual({ text: "*** Begin Patch\n*** End Patch\n", isPart: true });
});

test("a file is listed if a call says only that it has changed it", () => {
  const changes = ["add", "update", "delete"].map((kind) => ({ path: `/project/${kind}.md`, kind }));
  const files = filesAfter(["file_change", { changes }]);
  expect(statuses(files)).toEqual(["added add.md", "deleted delete.md", "modified update.md"]);
  expect(files.map(({ added }) => added)).toEqual([undefined, undefined, undefined]);
  expect(patchOfCalls(files)).toMatchObject({ isPart: true });
  expect(linesOf(files)).toEqual(["*** Delete File: delete.md"]);
});

test("a call that has the lines of added and deleted files says that it adds and deletes them", () => {
  const changes = [
    { path: "a.md", kind: { type: "add" }, diff: "one\ntwo\n" },
    { path: "b.md", kind: "delete", diff: "old\n" },
    { path: "c.md", kind: { type: "update", move_path: "d.md" }, diff: "@@ -1 +1 @@\n-x\n+y\n" },
  ];
  const files = filesAfter(["fileChange", { changes }]);
  expect(statuses(files)).toEqual(["added a.md", "deleted b.md", "renamed d.md"]);
  expect(files.map(({ added, removed }) => [added, removed])).toEqual([[2, 0], [0, 1], [1, 1]]);
});

test.each([
  ["search_replace", 1],
  ["Search and replace in a.md", 1],
  ["read_file", 0],
  ["grep", 0],
])("%s with a path and two texts is an edit of %i files", (name, count) => {
  expect(filesAfter([name, { path: "a.md", old_string: "x", new_string: "y" }])).toHaveLength(count);
});

const reported = "--- /project/x\n+++ /project/x\n@@ -41,2 +41,3 @@\n before\n-two\n+2\n+3\n";

/** The files after one call whose result has a patch. */
function filesReported(name: string, input: object): CalledFile[] {
  const told = new Told().call("c", name, input).gave("c", "ok", { patch: reported });
  return filesOfCalls(changingCalls(rowsOf(applyEvents(emptyTranscript, told.events).items)), "/project");
}

const edit = { file_path: "/project/x", old_string: "two\n", new_string: "2\n3\n" };

test.each([
  ["an edit", "Edit", edit],
  ["several edits", "MultiEdit", { file_path: "/project/x", edits: [{ old_string: "two", new_string: "2" }, { old_string: "", new_string: "3" }] }],
  ["a write", "Write", { file_path: "/project/x", content: "before\n2\n3\n" }],
  ["a patch", "apply_patch", { input: "*** Begin Patch\n*** Update File: x\n@@\n before\n-two\n+2\n+3\n*** End Patch" }],
])("the lines of %s have the numbers that its result reports, and are counted once", (_, name, input) => {
  const files = filesReported(name, input);
  expect(files.map(({ path, status, added, removed }) => [path, status, added, removed])).toEqual([["x", "modified", 2, 1]]);
  const diffs = files.flatMap(({ steps }) => steps.flatMap((step) => step.reported ?? []).flatMap((file) => file.diffs));
  expect(diffs).toMatchObject([{ lines: [{ number: 41, oldNumber: 41 }, { number: 42 }, { number: 42 }, { number: 43 }] }]);
});

test("a patch to copy is made from the call, not from what its result reports", () => {
  expect(linesOf(filesReported("Edit", edit))).toEqual(["*** Update File: x", "@@", "-two", "+2", "+3"]);
});
