import { useMemo } from "react";

import { languageOf } from "../../markdown/highlight.tsx";
import { Chunks } from "../../ui/Chunks.tsx";
import { useColours } from "./colours.ts";
import type { Diff, Line } from "./diff.ts";
import { colouredText } from "./DiffView.tsx";

/** More lines are shown without colours, because each coloured line is an element. */
const mostLines = 2_000;

/** A patch as it was written, with coloured lines. */
export function Patch({ text }: { readonly text: string }) {
  const parts = useMemo(() => partsOf(text.split("\n")), [text]);
  if (parts.reduce((sum, { lines }) => sum + lines.length, 0) > mostLines) return <Chunks text={text} />;
  return parts.map((part, at) => <PatchPart key={at} part={part} isLast={at === parts.length - 1} />);
}

/** The part of a patch about one file. */
interface Part {
  readonly language: string | undefined;
  readonly lines: readonly string[];
}

function PatchPart({ part: { language, lines }, isLast }: { readonly part: Part; readonly isLast: boolean }) {
  const code = useMemo(() => lines.map(lineOf), [lines]);
  const diff = useMemo((): Diff => ({ lines: code.filter((line) => line !== undefined), added: 0, removed: 0 }), [code]);
  const shown = useMemo(() => diff.lines.map(() => true), [diff]);
  const colours = useColours(diff, shown, language);
  return lines.map((text, at) => {
    const line = code[at];
    const stretches = line && colours.get(line);
    return (
      <span key={at} className="patch-line" data-mark={markOf(text)}>
        {stretches ? [text.slice(0, 1), ...colouredText(text.slice(1), 0, stretches)] : text}
        {!(isLast && at === lines.length - 1) && "\n"}
      </span>
    );
  });
}

/** A line of code in a patch. The first letter says whether it was removed or added. */
function lineOf(text: string): Line | undefined {
  const mark = markOf(text);
  if (mark === "@" || !/^[ +-]/.test(text)) return undefined;
  return { mark: mark === "+" || mark === "-" ? mark : " ", pieces: [{ text: text.slice(1), isChanged: false }], number: 0 };
}

/** Splits a patch where another file begins. */
function partsOf(lines: readonly string[]): Part[] {
  const parts: { language: string | undefined; lines: string[] }[] = [];
  for (const line of lines) {
    const name = /^(?:\*\*\* (?:(?:Update|Add|Delete) File: )?|diff --git .* "?b\/|\+\+\+ "?b\/)(.+?)"?$/.exec(line)?.[1];
    const isNext = name !== undefined && !line.startsWith("+++") && !/^\*\*\* (Begin|End|Move)/.test(line);
    if (parts.length === 0 || isNext) parts.push({ language: undefined, lines: [] });
    const part = parts.at(-1);
    if (name !== undefined && part) part.language ??= languageOf(name);
    part?.lines.push(line);
  }
  return parts;
}

function markOf(line: string): string | undefined {
  if (/^(@@|\*\*\*|diff --git |--- |\+\+\+ )/.test(line)) return "@";
  return line.startsWith("+") || line.startsWith("-") ? line[0] : undefined;
}
