import { render } from "@testing-library/react";
import { expect, test } from "vitest";

import { Markdown } from "../src/markdown/Markdown.tsx";

const shown = (text: string) => render(<Markdown text={text} />).container.querySelector("p")?.innerHTML;

test("a simple formula has subscripts and superscripts, and its source as a title", () => {
  const html = shown("It grows as $d_n = d_0 \\cdot 2^{n-1}$, at most.");
  expect(html).toBe(
    'It grows as <span class="math" title="$d_n = d_0 \\cdot 2^{n-1}$">d<sub>n</sub> = d<sub>0</sub> · 2<sup>n-1</sup></span>, at most.',
  );
  expect(shown("$$p_n = p^n$$")).toContain("p<sub>n</sub> = p<sup>n</sup>");
});

test.each(["It costs $5 and then $10.", "Set $HOME_DIR or $PATH_B$x now", "$\\frac{a}{b}_n$", "$x$", "$a_n", "$a_<b>$"])(
  "%s is no simple formula, and stays as it was written",
  (text) => {
    const { container } = render(<Markdown text={text} />);
    expect([container.querySelector(".math"), container.textContent]).toEqual([null, text]);
  },
);
