import { render } from "@testing-library/react";
import { expect, test } from "vitest";

import { commonIndent, diffOf } from "../src/conversation/tools/diff.ts";
import { DiffView, WholeDiff } from "../src/conversation/tools/DiffView.tsx";

const change = { before: "    loop {\n        sleep(1);\n\n    }\n", after: "    loop {\n        sleep(2);\n\n    }\n" };
const diff = () => diffOf(change) ?? { lines: [], added: 0, removed: 0 };
const lines = () =>
  [...document.querySelectorAll(".diff-line")].map((line) => [
    line.querySelector(".diff-indent")?.textContent ?? "",
    line.querySelector(".diff-text")?.textContent,
  ]);

test("the indent of all lines is left out, and the rest of it does not break from its line", () => {
  render(<DiffView id="d" diff={diff()} layout="unified" />);
  expect(lines()).toEqual([
    ["", "loop {\n"],
    ["    ", "sleep(1);\n"],
    ["    ", "sleep(2);\n"],
    ["", "\n"],
    ["", "}\n"],
  ]);
});

test("who must decide about a change sees its lines as they are", () => {
  render(<WholeDiff diff={diff()} />);
  expect(lines()[0]).toEqual(["    ", "loop {\n"]);
});

test("spaces and tabs have an indent in common only if they are the same", () => {
  expect(commonIndent(diffOf({ before: "\t  a\n", after: "\t\tb\n" })?.lines ?? [])).toBe("\t");
  expect(commonIndent([])).toBe("");
});
