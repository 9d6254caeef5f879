// Code whose colours would hold up the page stays plain.
import { expect, test } from "vitest";

import { isTame } from "../src/markdown/highlight.tsx";

test.each(["a", "_", "9"])("a word of thousands of %s is not coloured", (letter) => {
  expect(isTame(`let x = ${letter.repeat(20_000)};`, "typescript")).toBe(false);
});

test.each(["a ", "a*", "a&", "a\n"])("C that goes on with %j is not coloured", (stretch) => {
  expect(isTame(stretch.repeat(1000), "c")).toBe(false);
  expect(isTame(stretch.repeat(1000), "python")).toBe(true);
});

test("code that somebody has written is coloured, however long", () => {
  const line = "static int compare(const void *left, const void *right) { return strcmp(left, right); }\n";
  expect(isTame(line.repeat(200), "c")).toBe(true);
  expect(isTame('  { "name": "value", "more": [1, 2, 3] },\n'.repeat(400), "json")).toBe(true);
});
