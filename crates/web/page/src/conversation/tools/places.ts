// Finds the lines of a file that a call has changed, because the call itself does not say their numbers.
import { createContext, type RefObject, useContext, useMemo, useRef } from "react";

import { fieldsOf, fileIn } from "../../content/given.ts";
import { type Change, kindOf } from "../../content/kind.ts";
import { asText } from "../../content/text.ts";
import type { Row, ToolRow } from "../row.ts";

/** The rows among which the rows below are. A reference, so that a new row does not render the others again. */
export const Among = createContext<RefObject<readonly Row[]>>({ current: [] });

/** A reference to the newest rows. Rows that are rendered at the same time can read it already. */
export function useLatest(rows: readonly Row[]): RefObject<readonly Row[]> {
  const latest = useRef(rows);
  latest.current = rows;
  return latest;
}

/** A part of a file. */
interface Part {
  /** The number of its first line. */
  readonly first: number;
  readonly text: string;
}

/** How many lines are in the file before each change of a call. Undefined if that is not known. */
export function usePlaces(row: ToolRow | undefined): readonly (number | undefined)[] {
  const among = useContext(Among);
  return useMemo(() => (row ? placesOf(row, among.current) : []), [row, among]);
}

export function placesOf(row: ToolRow, rows: readonly Row[]): (number | undefined)[] {
  const kind = kindOf(row.name, row.input);
  if (kind.kind !== "edit" || row.state === "failed") return [];
  if (kind.isWhole) return [0];
  const { changes } = kind;
  const [only] = changes;
  // Some versions of Claude print the changed lines with their numbers.
  const printed = only && changes.length === 1 ? numberedIn(row.output) : undefined;
  const there = printed && only && placeIn(printed, only.after);
  if (there !== undefined) return [there];
  let part = partBefore(row, kind.path, rows);
  return changes.map((change) => {
    const place = part && placeIn(part, change.before);
    part = part && changed(part, change);
    return place;
  });
}

/** What is known of a file before a call: what was read or written last, with the edits since then. */
function partBefore(row: ToolRow, path: string, rows: readonly Row[]): Part | undefined {
  const edits: Change[] = [];
  for (const call of callsBefore(row, rows)) {
    if (call.state !== "done" || fileIn(call.input) !== path) continue;
    const kind = kindOf(call.name, call.input);
    const whole = kind.kind === "edit" && kind.isWhole ? kind.changes[0] : undefined;
    const read = kind.kind === "look" && kind.verb === "Read" ? numberedIn(call.output) : undefined;
    const part = whole ? { first: 1, text: whole.after } : read;
    if (part) return edits.reduceRight<Part | undefined>((now, edit) => now && changed(now, edit), part);
    if (kind.kind !== "edit") continue;
    if (fieldsOf(call.input).replace_all === true) return undefined;
    edits.push(...kind.changes.toReversed());
  }
  return undefined;
}

/** The calls before a call, the last one first. */
function* callsBefore(row: ToolRow, rows: readonly Row[]): Generator<ToolRow> {
  let isBefore = false;
  for (let at = rows.length - 1; at >= 0; at--) {
    const other = rows[at];
    if (other?.kind !== "tool") continue;
    if (isBefore) yield other;
    else isBefore = other.key === row.key;
  }
}

/** How many lines are before a text. Undefined if it is not there, or at several places. */
function placeIn({ first, text }: Part, wanted: string): number | undefined {
  const at = wanted ? text.indexOf(wanted) : -1;
  if (at < 0 || text.includes(wanted, at + 1)) return undefined;
  return first - 1 + text.slice(0, at).split("\n").length - 1;
}

function changed(part: Part, { before, after }: Change): Part | undefined {
  if (placeIn(part, before) === undefined) return undefined;
  return { ...part, text: part.text.replace(before, () => after) };
}

/** The lines that a tool printed with their numbers, one after the other. */
function numberedIn(output: unknown): Part | undefined {
  const lines: string[] = [];
  let first: number | undefined;
  for (const line of asText(output).split("\n")) {
    const [, number, text = ""] = /^ *(\d{1,7})(?:→|\t|\| )(.*)$/.exec(line) ?? [];
    if (number !== undefined && Number(number) === (first ?? Number(number)) + lines.length) {
      first ??= Number(number);
      lines.push(text);
    } else if (first !== undefined) break;
  }
  return first === undefined ? undefined : { first, text: `${lines.join("\n")}\n` };
}
