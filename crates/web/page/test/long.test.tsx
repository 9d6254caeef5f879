import { act, render, screen, waitFor } from "@testing-library/react";
import { expect, test } from "vitest";

import { Clipped } from "../src/conversation/Clipped.tsx";
import { LongText } from "../src/conversation/LongText.tsx";
import { Markdown } from "../src/markdown/Markdown.tsx";
import { chunksOf } from "../src/ui/Chunks.tsx";

const paragraphs = Array.from({ length: 6_000 }, (_, number) => `Paragraph **${number}** of many.`);
const long = paragraphs.join("\n\n");
const shownOf = (text: string) => text.replaceAll("**", "").replaceAll("\n", "");

test("an answer over 100,000 characters goes on growing, as Markdown", () => {
  const { container, rerender } = render(<Markdown text="" streaming />);
  let first: Element | null = null;
  for (let length = 0; length < long.length; length += 4_000) {
    rerender(<Markdown text={long.slice(0, length)} streaming />);
    first ??= container.querySelector("p");
    expect(container.querySelector("p")).toBe(first);
  }
  rerender(<Markdown text={long} streaming />);
  expect(container.querySelectorAll("p")).toHaveLength(paragraphs.length);
  expect(container.textContent).toBe(shownOf(long));
  rerender(<Markdown text={long} />);
  expect(container.querySelector("p")).toBe(first);
  expect(container.textContent).toBe(shownOf(long));
});

test("one that is there already comes piece by piece, and whole", async () => {
  const { container } = render(<Markdown text={long} />);
  const atOnce = container.querySelectorAll("p").length;
  expect(atOnce).toBeGreaterThan(100);
  expect(atOnce).toBeLessThan(paragraphs.length / 3);
  await waitFor(() => expect(container.textContent).toBe(shownOf(long)), { timeout: 30_000 });
});

test("one long line and one long block of code grow too", () => {
  const words = Array.from({ length: 30_000 }, (_, number) => `w${number}`).join(" ");
  const lines = Array.from({ length: 12_000 }, (_, number) => `let a${number} = ${number};`).join("\n");
  for (const [text, shown, most] of [
    [words, words, 200],
    [`\`\`\`js\n${lines}`, lines, 100],
  ] as const) {
    const { container, rerender, unmount } = render(<Markdown text="" streaming />);
    for (let length = 0; length < text.length; length += 15_000) rerender(<Markdown text={text.slice(0, length)} streaming />);
    rerender(<Markdown text={text} streaming />);
    const root = container.querySelector("pre code") ?? container;
    expect(root.textContent).toBe(shown);
    // What is laid out by itself is short.
    expect(container.querySelectorAll(".piece, .chunk").length).toBeGreaterThan(10);
    expect(container.querySelectorAll(".piece, .chunk").length).toBeLessThan(most);
    rerender(<Markdown text={text} />);
    expect(root.textContent).toBe(shown);
    unmount();
  }
});

test("chunks are the text, and those before the last one stay", () => {
  const texts = ["", "short", "x".repeat(50_000), "line\n".repeat(9_000), `${"a b ".repeat(5_000)}\n${"c".repeat(9_000)}`];
  for (const text of texts) {
    const chunks = chunksOf(text);
    expect(chunks.join("")).toBe(text);
    expect(chunksOf(`${text} and more`).slice(0, -2)).toEqual(chunks.slice(0, -1).slice(0, chunksOf(`${text} and more`).length - 2));
    for (const chunk of chunks) expect(chunk.length).toBeLessThanOrEqual(8_000);
  }
});

test("plain text that grows is whole, and stays so; what was not seen growing is folded", async () => {
  const text = "line of text\n".repeat(2_000);
  const { container, rerender } = render(<LongText id="one" text={text.slice(0, 100)} growing />);
  rerender(<LongText id="one" text={text} growing />);
  expect(container.textContent).toBe(text);
  rerender(<LongText id="one" text={text} />);
  expect(container.textContent).toBe(`${text}Show less`);
  const { container: other } = render(<LongText id="two" text={text} />);
  expect(other.textContent?.length).toBeLessThan(text.length / 2);
  act(() => screen.getByRole("button", { name: /Show all/ }).click());
  expect(other.textContent).toBe(`${text}Show less`);
});

test("a text over 400,000 characters says how much of it only a copy has", () => {
  const text = "x".repeat(400_007);
  const { container } = render(
    <Clipped id="huge" label="Output" text={text} lines={8}>
      {(shown) => shown}
    </Clipped>,
  );
  const hint = "Not shown here: 7 more characters. The copy button copies the whole text.";
  expect(container.textContent).not.toContain(hint);
  act(() => screen.getByRole("button", { name: /Show all/ }).click());
  expect(container.querySelector("code")?.textContent).toHaveLength(400_000);
  expect(container.textContent).toContain(hint);
});
