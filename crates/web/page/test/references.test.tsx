import { render, screen } from "@testing-library/react";
import { expect, test } from "vitest";

import { Markdown } from "../src/markdown/Markdown.tsx";
import { nothing, parse, parseStreaming } from "../src/markdown/parse.ts";

const text = [
  "See [the guide][g], [G] and ![a picture][p].",
  "",
  "A second paragraph, without any.",
  "",
  "- in a list: [the *guide*][g]",
  "",
  "> in a quote: [g][]",
  "",
  "[g]: https://example.org/guide 'The guide'",
  "[p]: <https://example.org/p.png>",
  "[g]: https://example.org/second",
  "",
].join("\n");

const guide = "https://example.org/guide";

function links(): (string | null)[] {
  return screen.getAllByRole("link").map((link) => `${link.textContent} ${link.getAttribute("href")}`);
}

const expected = [
  `the guide ${guide}`,
  `G ${guide}`,
  "a picture https://example.org/p.png",
  `the guide ${guide}`,
  `g ${guide}`,
  `${guide} ${guide}`,
  "https://example.org/p.png https://example.org/p.png",
  "https://example.org/second https://example.org/second",
];

test("references become links to what is defined below them", () => {
  render(<Markdown text={text} />);
  expect(links()).toEqual(expected);
});

test("they do so while the text is on its way, wherever it is cut", () => {
  for (const step of [1, 5]) {
    const { rerender, unmount } = render(<Markdown text="" streaming />);
    for (let length = 0; length < text.length + step; length += step)
      rerender(<Markdown text={text.slice(0, length)} streaming />);
    expect(links()).toEqual(expected);
    rerender(<Markdown text={text} />);
    expect(links()).toEqual(expected);
    unmount();
  }
});

test("what refers to nothing stays as it was written", () => {
  const { container } = render(<Markdown text={"[a][b], [c] and [d](\n\n[x]: https://example.org"} />);
  expect(container.textContent).toBe("[a][b], [c] and [d]([x]: https://example.org");
  expect(links()).toEqual(["https://example.org https://example.org"]);
});

test("a definition that leads to no web page makes no link", () => {
  const { container } = render(<Markdown text={"[a][b] ![a][b]\n\n[b]: javascript:window.hit=1"} />);
  expect(container.querySelector("a")).toBeNull();
  expect(container.textContent).toBe("[a][b] ![a][b][b]: javascript:window.hit=1");
});

test("a definition that comes is told to those alone that refer to it", () => {
  const before = parseStreaming(nothing, "[a][b]\n\nno reference\n\n[c]\n\nthree\n\nfour\n\n");
  const after = parseStreaming(before, `${before.text}[b]: https://example.org\n`);
  expect(after.blocks[0]?.node).not.toBe(before.blocks[0]?.node);
  expect(after.blocks.slice(1, 3)).toEqual(before.blocks.slice(1, 3));
  for (const index of [1, 2]) expect(after.blocks[index]).toBe(before.blocks[index]);
  const later = parseStreaming(after, `${after.text}\nand [more][b]`);
  expect(later.blocks[0]).toBe(after.blocks[0]);
  expect(later.blocks.at(-1)?.node).toMatchObject({ children: [{ type: "text" }, { type: "link", url: "https://example.org" }] });
});

test("references in a block that was cut are links too", () => {
  const long = Array.from({ length: 900 }, (_, number) => `word${number} [a${number % 7}][b] `).join("");
  const whole = `[b]: https://example.org/b\n\n${long}\n`;
  let parsed = nothing;
  for (let length = 0; length < whole.length; length += 800) parsed = parseStreaming(parsed, whole.slice(0, length));
  expect(parsed.blocks.filter(({ cutAt }) => cutAt !== undefined).length).toBeGreaterThan(1);
  const { container } = render(<Markdown text={whole} />);
  expect(container.querySelectorAll("a")).toHaveLength(901);
  for (const { node } of parsed.blocks.slice(1, -1)) expect(JSON.stringify(node)).not.toContain("linkReference");
});

test("thousands of definitions take no time", () => {
  const count = 3_000;
  const defined = Array.from({ length: count }, (_, number) => `[l${number}]: https://example.org/${number}`);
  const used = Array.from({ length: count }, (_, number) => `[l${number}]`);
  const { blocks } = parse(`${used.join(" ")}\n\n${defined.join("\n")}\n`);
  expect(JSON.stringify(blocks[0]?.node).match(/"type":"link"/g)).toHaveLength(count);
});
