import { applyEvents, emptyTranscript } from "@tokenrail/client";
import { render } from "@testing-library/react";
import { expect, test } from "vitest";

import { rowsOf } from "../src/conversation/rows.ts";
import { RowView } from "../src/conversation/RowView.tsx";
import { Markdown } from "../src/markdown/Markdown.tsx";
import { corpus } from "./corpus.ts";
import { Told } from "./events.ts";

/** Elements that Markdown has words for. Whatever else is made was made by the corpus. */
const own =
  "div,p,span,code,pre,figure,figcaption,button,em,strong,del,ul,ol,li,table,thead,tbody,tr,th,td,hr,br,sup,a,article,section,time,h3,dl,dt,dd";
const drawn = "svg.icon,svg.icon *";

function checkHarmless(container: HTMLElement): void {
  const strange = [...container.querySelectorAll("*")].filter((element) => !element.matches(`${own},${drawn}`));
  expect(strange.map((element) => element.outerHTML)).toEqual([]);
  const handlers = [...container.querySelectorAll("*")].flatMap((element) =>
    element.getAttributeNames().filter((name) => name.startsWith("on") || name === "src" || name === "srcset"),
  );
  expect(handlers).toEqual([]);
  for (const link of container.querySelectorAll("a")) {
    expect(link.protocol).toMatch(/^(https?|mailto):$/);
    expect(link.rel).toContain("noopener");
  }
  expect((window as { hit?: unknown }).hit).toBeUndefined();
}

test.each(corpus)("as an answer, %j is text", (text) => {
  const { container } = render(<Markdown text={text} />);
  checkHarmless(container);
  expect(container.textContent).not.toBe("");
});

test.each(corpus)("streamed letter by letter, %j is text at every moment", (text) => {
  const { container, rerender } = render(<Markdown text="" streaming />);
  for (let length = 1; length <= text.length; length++) {
    rerender(<Markdown text={text.slice(0, length)} streaming />);
    checkHarmless(container);
  }
  rerender(<Markdown text={text} />);
  checkHarmless(container);
});

test("HTML is shown as it was written", () => {
  const { container } = render(<Markdown text={"before\n\n<b onclick=x>bold</b>\n\nafter <i>it</i>"} />);
  expect(container.textContent).toContain("<b onclick=x>bold</b>");
  expect(container.textContent).toContain("after <i>it</i>");
});

test.each(corpus)("in every other place too, %j is text", (text) => {
  const told = new Told()
    .prompt(text)
    .message("m", [
      { type: "reasoning", text },
      { type: text, text },
      { type: "tool_use", id: "c", name: text, input: { [text]: text } },
    ])
    .call("c", text, { [text]: text })
    .gave("c", [{ type: "text", text }])
    .call("d", "Bash", { command: text })
    .gave("d", { nested: { [text]: text } }, { isError: true })
    .call("e", "Edit", { file_path: `${text}.html`, old_string: text, new_string: text })
    .asked("1-1", text, { command: text, [text]: text }, [{ optionId: "y", name: text, kind: text }])
    .failed(text, { class: text, code: text, recoverable: true })
    .result({ outcome: text });
  const rows = rowsOf(applyEvents(emptyTranscript, told.events).items);
  const { container } = render(rows.map((row) => <RowView key={row.key} row={row} plain={false} />));
  checkHarmless(container);
});
