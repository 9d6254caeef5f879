import type { ReactNode } from "react";

import { CopyButton } from "../ui/CopyButton.tsx";
import { counted } from "../ui/format.ts";
import { useKept } from "./kept.tsx";

/** The number of characters that counts as one line, so that a text without line breaks is cut too. */
const charactersOfLine = 240;

/** A longer text is never rendered completely, because it would block the page. It can be copied. */
const longestText = 400_000;

export type Part = "beginning" | "end";

interface Props {
  readonly id: string;
  readonly label: string;
  readonly text: string;
  /** How many lines are shown at first. */
  readonly lines: number;
  /** Which part is shown at first. The reason of a failure is at the end. */
  readonly part?: Part;
  readonly children: (shown: string) => ReactNode;
}

/** One part of a long text, and a button that shows all of it. */
export function Clipped({ id, label, text, lines, part = "beginning", children }: Props) {
  const [all, setAll] = useKept(`${id} all`, false);
  const short = shortOf(text, lines, part);
  const shown = all ? text.slice(0, longestText) : short;
  const rest = text.length - short.length;
  const isAbove = part === "end" && !all && rest > 0;
  return (
    <figure className="io">
      <figcaption>
        <span>{label}</span>
        <CopyButton text={text} what={label.toLowerCase()} />
      </figcaption>
      {isAbove && (
        <button type="button" className="more" aria-expanded={false} onClick={() => setAll(true)}>
          ⋯ {aboveIn(text, short)} above
        </button>
      )}
      <pre tabIndex={0} aria-label={label}>
        <code>{children(shown)}</code>
      </pre>
      {rest > 0 && !isAbove && (
        <button type="button" className="more" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? "Show less" : `Show all: ${counted(lineCount(text), "line")}, ${counted(text.length, "character")}`}
        </button>
      )}
      {all && text.length > longestText && (
        <p className="hint">
          Not shown here: {counted(text.length - longestText, "more character")}. The copy button copies the whole text.
        </p>
      )}
    </figure>
  );
}

/** The part that is shown at first. If only a few more lines would be hidden, the whole text is shown. */
export function shortOf(text: string, lines: number, part: Part = "beginning"): string {
  if (beginningOf(text, 2 * lines) === text) return text;
  return part === "end" ? endOf(text, lines) : beginningOf(text, lines);
}

/** At most this many lines, each of a limited length. */
export function beginningOf(text: string, lines: number): string {
  let end = 0;
  for (let line = 0; line < lines; line++) {
    const next = text.indexOf("\n", end);
    if (next < 0) {
      end = text.length;
      break;
    }
    end = next + 1;
  }
  const longest = lines * charactersOfLine;
  return end < text.length ? text.slice(0, Math.min(end - 1, longest)) : text.slice(0, longest);
}

/** At most this many of the last lines, each of a limited length. Line breaks at the end do not count. */
export function endOf(text: string, lines: number): string {
  const full = text.replace(/\n+$/, "");
  let start = full.length;
  for (let line = 0; line < lines && start > 0; line++) start = full.lastIndexOf("\n", start - 1);
  return full.slice(Math.max(start + 1, full.length - lines * charactersOfLine, 0));
}

/** 42 lines, or the characters of a part of a line. */
function aboveIn(text: string, short: string): string {
  const lines = lineCount(text.trimEnd()) - lineCount(short);
  return lines > 0 ? counted(lines, "line") : counted(text.length - short.length, "character");
}

function lineCount(text: string): number {
  let lines = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines++;
  return lines;
}
