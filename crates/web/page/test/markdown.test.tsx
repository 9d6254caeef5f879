import { render, screen, waitFor } from "@testing-library/react";
import { expect, test } from "vitest";

import { spansOf } from "../src/markdown/ansi.tsx";
import { Markdown } from "../src/markdown/Markdown.tsx";
import { nothing, parse, parseMore, type Parsed, parseStreaming } from "../src/markdown/parse.ts";

const text = [
  "# Title",
  "",
  "A paragraph with **bold**, `code` & a [link](https://example.org/x).",
  "",
  "1. one",
  "",
  "2. two",
  "   - nested",
  "",
  "```rust",
  "fn main() {}",
  "```",
  "",
  "| a | b |",
  "| --- | --: |",
  "| 1 | 2 |",
  "",
  "- [x] done",
  "- [ ] to do",
  "",
  "Setext",
  "======",
  "",
  "> quote",
  "lazy",
].join("\n");

function shape(parsed: Parsed) {
  return parsed.blocks.map(({ start, node }) => [start, node.type, node.type === "code" ? node.value : ""]);
}

test("Markdown becomes elements", async () => {
  const { container } = render(<Markdown text={text} />);
  expect(screen.getByRole("heading", { name: "Title", level: 3 })).toBeTruthy();
  expect(screen.getByRole("link", { name: "link" }).getAttribute("href")).toBe("https://example.org/x");
  expect(screen.getAllByRole("cell").map((cell) => cell.dataset.align)).toEqual([undefined, "right"]);
  expect(screen.getByRole("img", { name: "done" })).toBeTruthy();
  expect(container.querySelectorAll("ol > li")).toHaveLength(2);
  // The colours come later, and change nothing else.
  const code = container.querySelector("figure.code code")?.textContent;
  await waitFor(() => expect(container.querySelector("figure.code .hljs-keyword")?.textContent).toBe("fn"));
  expect(container.querySelector("figure.code code")?.textContent).toBe(code);
});

test("a text parsed as it grows is the text parsed at once, wherever it is cut", () => {
  for (const step of [1, 3, 7]) {
    let parsed = nothing;
    for (let length = 0; length < text.length + step; length += step) parsed = parseMore(parsed, text.slice(0, length));
    expect(shape(parsed)).toEqual(shape(parse(text)));
  }
});

test("code that grows is the code that is parsed at once, however its fences look", () => {
  const codes = [
    "```js\nlet a;\n\n\nlet b;\n```\n\nafter\n",
    "~~~\n```\n  ~~\n\n~~~~  \nafter\n\n```\nopen\n\n",
    "````md\n```\ninner\n```\n`````x\n   ````\n",
    "  ```\n  indented\n  ```\n- ```\n  in a list\n  ```\n",
    "```\r\na\r\nb\r\n```\r\nc",
    "    by spaces\n\n    more\nend",
  ];
  for (const code of codes)
    for (const step of [1, 2, 5]) {
      let parsed = nothing;
      for (let length = 0; length < code.length + step; length += step) {
        const sofar = code.slice(0, length);
        parsed = parseStreaming(parsed, sofar);
        expect(shape(parsed), JSON.stringify(sofar)).toEqual(shape(parseMore(nothing, sofar)));
      }
    }
});

test("a block that does not end is cut while it grows, and whole at the end", () => {
  const kinds: [string, (number: number) => string][] = [
    ["paragraph", (number) => `word${number} and *more* `],
    ["list", (number) => `- point ${number}\n`],
    ["blockquote", (number) => `> line ${number}\n`],
  ];
  for (const [type, piece] of kinds) {
    const long = Array.from({ length: 1500 }, (_, number) => piece(number)).join("");
    let parsed = parseMore(nothing, "# Title\n\nfirst\n\n");
    for (let length = 0; length < long.length; length += 997)
      parsed = parseStreaming(parsed, `# Title\n\nfirst\n\n${long.slice(0, length)}`);
    const newest = parsed.blocks.at(-1);
    expect(parsed.text.length - (newest?.start ?? 0), "what is parsed again is short").toBeLessThan(7_000);
    expect(parsed.blocks.length).toBeGreaterThan(4);
    const whole = `# Title\n\nfirst\n\n${long}`;
    expect(shape(parse(whole, parsed))).toEqual([
      [0, "heading", ""],
      [9, "paragraph", ""],
      [16, type, ""],
    ]);
    expect(shape(parse(`${whole} `, parseStreaming(parsed, whole)))).toHaveLength(3);
  }
});

test("a paragraph that was cut reads as one", () => {
  const words = Array.from({ length: 4000 }, (_, number) => String(number)).join(" ");
  const { container, rerender } = render(<Markdown text="" streaming />);
  for (let length = 1000; length < words.length; length += 1500) {
    rerender(<Markdown text={words.slice(0, length)} streaming />);
    expect(container.textContent).toBe(words.slice(0, length).trimEnd());
  }
  expect(container.querySelectorAll("p.piece").length).toBeGreaterThan(2);
  rerender(<Markdown text={words} />);
  expect(container.querySelectorAll("p")).toHaveLength(1);
  expect(container.textContent).toBe(words);
});

test("what is settled is not parsed again", () => {
  const before = parseMore(nothing, "one\n\ntwo\n\nthree\n\nfour");
  const after = parseMore(before, "one\n\ntwo\n\nthree\n\nfour and more");
  expect(after.blocks.slice(0, 2)).toEqual(before.blocks.slice(0, 2));
  expect(after.blocks[0]?.node).toBe(before.blocks[0]?.node);
  expect(after.blocks[1]?.node).toBe(before.blocks[1]?.node);
  expect(after.blocks.at(-1)?.start).toBe("one\n\ntwo\n\nthree\n\n".length);
});

test("another text begins anew", () => {
  const before = parseMore(nothing, "one\n\ntwo\n\nthree");
  expect(shape(parseMore(before, "1\n\n2"))).toEqual(shape(parse("1\n\n2")));
});

test("finished blocks keep their elements while the last one grows", () => {
  const { container, rerender } = render(<Markdown text={"one\n\ntwo\n\nthree\n\nfo"} streaming />);
  const first = container.querySelector("p");
  rerender(<Markdown text={"one\n\ntwo\n\nthree\n\nfour"} streaming />);
  expect(container.querySelector("p")).toBe(first);
  expect(container.textContent).toBe("onetwothreefour");
});

test("a fence that is still open is code already", () => {
  const { container } = render(<Markdown text={"```js\nconst a = 1;\n"} streaming />);
  expect(container.querySelector("pre code")?.textContent).toBe("const a = 1;");
});

test("terminal colours become styles, and all other escapes nothing", () => {
  const escaped =
    "\u001b[1;31mred\u001b[0m plain\u001b]0;title\u0007 \u001b]8;;javascript:x\u001b\\link\u001b]8;;\u001b\\\u001b[2J\u001b[38;5;200m.\u001b[";
  expect(
    spansOf(escaped)
      .map((span) => span.text)
      .join(""),
  ).toBe("red plain link.");
  expect(spansOf(escaped)[0]).toMatchObject({ text: "red", colour: "red", bold: true });
  expect(spansOf("\u001b[32").map((span) => span.text)).toEqual([]);
  expect(
    spansOf("a\r\nb\tc\n")
      .map((span) => span.text)
      .join(""),
  ).toBe("a\nb\tc\n");
});
