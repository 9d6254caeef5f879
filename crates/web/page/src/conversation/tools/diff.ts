// Compares two texts by lines, and changed lines by words.
import { diffArrays, diffWordsWithSpace } from "diff";

import type { Change } from "../../content/kind.ts";

/** Longer texts are not compared, because that would block the page. */
const longestText = 60_000;
const mostEdits = 1_500;

/** The words of longer lines are not compared. */
const longestLine = 400;
const mostWordPairs = 200;

export interface Piece {
  readonly text: string;
  readonly isChanged: boolean;
}

export interface Line {
  readonly mark: " " | "-" | "+";
  readonly pieces: readonly Piece[];
  /** The number of the line in its text, from 1: in the new text, or in the old text for a removed line. */
  readonly number: number;
  /** The number of an unchanged line in the old text, if it is known. */
  readonly oldNumber?: number | undefined;
}

export interface Diff {
  readonly lines: readonly Line[];
  readonly added: number;
  readonly removed: number;
}

const known = new WeakMap<Change, Diff | "too long">();

/** The differences, or `undefined` if the texts are too long or too different to compare. */
export function diffOf(change: Change): Diff | undefined {
  let diff = known.get(change);
  if (diff === undefined) {
    diff = compared(change) ?? "too long";
    known.set(change, diff);
  }
  return diff === "too long" ? undefined : diff;
}

function compared({ before, after }: Change): Diff | undefined {
  if (before.length + after.length > longestText) return undefined;
  // If only one of the texts ends with a line break, the line break is a part of the change.
  const alike = [before, after].every((text) => !text || text.endsWith("\n"));
  const split = (text: string) => (text ? (alike ? text.slice(0, -1) : text).split("\n") : []);
  const parts = diffArrays(split(before), split(after), { maxEditLength: mostEdits });
  if (!parts) return undefined;
  const lines: Line[] = [];
  let [old, now] = [0, 0];
  for (const { value, added, removed } of parts)
    for (const text of value) {
      const mark = added ? "+" : removed ? "-" : " ";
      if (mark !== "+") old++;
      if (mark !== "-") now++;
      const place = mark === " " ? { number: now, oldNumber: old } : { number: mark === "-" ? old : now };
      lines.push({ mark, pieces: [{ text, isChanged: false }], ...place });
    }
  const numberOf = (mark: string) => lines.filter((line) => line.mark === mark).length;
  const [plus, minus] = [numberOf("+"), numberOf("-")];
  return { lines: withWords(lines), added: plus, removed: minus };
}

/** Marks the changed words where as many lines are added as removed. */
export function withWords(lines: readonly Line[]): Line[] {
  const result = [...lines];
  let pairs = 0;
  for (let at = 0; at < lines.length; ) {
    const minus = runOf(lines, at, "-");
    const plus = runOf(lines, at + minus, "+");
    for (let pair = 0; minus === plus && pair < minus && pairs < mostWordPairs; pair++, pairs++)
      markWords(result, at + pair, at + minus + pair);
    at += Math.max(1, minus + plus);
  }
  return result;
}

/** A line of the split view: the old text on the left, and the new text on the right. */
export interface Pair {
  readonly left: Line | undefined;
  readonly right: Line | undefined;
  readonly isShown: boolean;
}

/** Removed lines stand beside the added lines after them. A pair is shown if one of its lines is. */
export function pairsOf(lines: readonly Line[], shown: readonly boolean[]): Pair[] {
  const pairs: Pair[] = [];
  for (let at = 0; at < lines.length; ) {
    const minus = runOf(lines, at, "-");
    const plus = runOf(lines, at + minus, "+");
    if (minus + plus === 0) {
      pairs.push({ left: lines[at], right: lines[at], isShown: shown[at] === true });
      at++;
    }
    for (let pair = 0; pair < Math.max(minus, plus); pair++) {
      const [old, now] = [pair < minus ? at + pair : -1, pair < plus ? at + minus + pair : -1];
      pairs.push({ left: lines[old], right: lines[now], isShown: shown[old] === true || shown[now] === true });
    }
    at += minus + plus;
  }
  return pairs;
}

function runOf(lines: readonly Line[], from: number, mark: string): number {
  let end = from;
  while (lines[end]?.mark === mark) end++;
  return end - from;
}

function markWords(lines: Line[], oldAt: number, newAt: number): void {
  const [before, after] = [lines[oldAt], lines[newAt]];
  if (!before || !after) return;
  const [a, b] = [textOfLine(before), textOfLine(after)];
  if (a.length > longestLine || b.length > longestLine) return;
  const parts = diffWordsWithSpace(a, b);
  // If nothing but spaces is common, the marks would say nothing.
  if (!parts.some(({ added, removed, value }) => !added && !removed && value.trim())) return;
  const only = (side: "added" | "removed") =>
    parts
      .filter((part) => !part[side === "added" ? "removed" : "added"])
      .map((part) => ({ text: part.value, isChanged: part[side] }));
  lines[oldAt] = { ...before, pieces: only("removed") };
  lines[newAt] = { ...after, pieces: only("added") };
}

export function textOfLine({ pieces }: Line): string {
  return pieces.map(({ text }) => text).join("");
}

/** The spaces and tabs at the beginning of a line, and the rest of it. A change of these spaces stays in the rest. */
export function splitIndent({ pieces }: Line, without = ""): { indent: string; pieces: readonly Piece[] } {
  const [first, ...more] = pieces;
  if (!first || first.isChanged) return { indent: "", pieces };
  const indent = /^[ \t]*/.exec(first.text)?.[0] ?? "";
  const rest = { ...first, text: first.text.slice(indent.length) };
  return { indent: indent.slice(without.length), pieces: [rest, ...more] };
}

/** The spaces and tabs with which all lines begin, except for empty ones. */
export function commonIndent(lines: readonly Line[]): string {
  let common: string | undefined;
  for (const line of lines) {
    if (!textOfLine(line).trim()) continue;
    const { indent } = splitIndent(line);
    common ??= indent;
    while (!indent.startsWith(common)) common = common.slice(0, -1);
    if (!common) return "";
  }
  return common ?? "";
}

/** Unchanged lines that stay visible around a change. */
const context = 3;

/** Which lines are visible while unchanged ones are folded. */
export function visibleOf(lines: readonly Line[]): boolean[] {
  const visible = lines.map(() => false);
  lines.forEach(({ mark }, at) => {
    if (mark !== " ") visible.fill(true, Math.max(0, at - context), at + context + 1);
  });
  return visible;
}

/** The line that says how many lines are hidden needs a place too, so fewer lines are not hidden. */
const fewestHidden = 3;

/** Shows the lines that are hidden one or two at a time. */
export function withoutSmallGaps(shown: readonly boolean[]): boolean[] {
  const result = [...shown];
  for (let at = 0; at < shown.length; at++) {
    if (shown[at]) continue;
    const end = shown.indexOf(true, at);
    const after = end < 0 ? shown.length : end;
    if (after - at < fewestHidden) result.fill(true, at, after);
    at = after;
  }
  return result;
}
