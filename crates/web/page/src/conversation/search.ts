import { useDeferredValue, useMemo } from "react";

import { mainOf } from "../content/given.ts";
import { kindOf } from "../content/kind.ts";
import { asText } from "../content/text.ts";
import { type Part, shortOf } from "./Clipped.tsx";
import { grouped } from "./groups.ts";
import { isBeyond } from "./LongText.tsx";
import { textOf } from "./row-text.ts";
import type { Row, ToolRow } from "./row.ts";
import { patchLines } from "./ToolInput.tsx";
import { inputLines } from "./ToolInput.tsx";
import { outputFieldsOf, outputLines, partOf } from "./ToolOutput.tsx";
import { diffOf, textOfLine } from "./tools/diff.ts";
import { shownAtFirst } from "./tools/DiffView.tsx";
import { fieldLines } from "./tools/InputFields.tsx";
import { reportedDiffs } from "./tools/reported.ts";

/** The texts of rows that were searched. A row remains the same object until it changes. */
const texts = new WeakMap<Row, string>();

function searchable(row: Row): string {
  let text = texts.get(row);
  if (text === undefined) {
    text = textOf(row).toLowerCase();
    texts.set(row, text);
  }
  return text;
}

/** The indices of the rows that contain the words. */
export function matchesOf(rows: readonly Row[], words: string): number[] {
  const wanted = words.trim().toLowerCase();
  if (!wanted) return [];
  return rows.flatMap((row, index) => (searchable(row).includes(wanted) ? [index] : []));
}

export function useMatches(rows: readonly Row[], words: string): number[] {
  const wanted = useDeferredValue(words);
  return useMemo(() => matchesOf(rows, wanted), [rows, wanted]);
}

/** The switches that must be on, so that the words in a row are rendered. */
export function foldsOver(row: Row, words: string, plain: boolean): string[] {
  const wanted = words.trim().toLowerCase();
  const isIn = (text: string) => text.toLowerCase().includes(wanted);
  if (!wanted || !isIn(searchable(row))) return [];
  const { key } = row;
  const beyond = (text: string) => (isIn(text) && isBeyond(text, isIn) ? [`${key} all`] : []);
  switch (row.kind) {
    case "prompt":
      return beyond(row.text);
    case "text":
      return plain ? beyond(row.text) : [];
    case "thinking":
      return [`${key} open`, ...(plain ? beyond(row.text) : [])];
    case "notice":
      return [`${key} open`];
    case "group":
      return [`${key} open`, ...row.calls.flatMap((call) => foldsOver(call, words, plain))];
    case "tool":
      return [`${key} open`, ...clippedOf(row, isIn), ...grouped(row.inner).flatMap((inner) => foldsOver(inner, words, plain))];
    default:
      return [];
  }
}

function clippedOf(row: ToolRow, isIn: (text: string) => boolean): string[] {
  const { key, name, input, output } = row;
  const hides = (text: string, lines: number, part?: Part) => isIn(text) && !isIn(shortOf(text, lines, part));
  const outputFields = outputFieldsOf(row);
  const isCut = hides(asText(output), outputLines, partOf(row));
  const cutOutput = outputFields ? fieldsOver(`${key} output`, outputFields, hides) : isCut ? [`${key} output all`] : [];
  const kind = kindOf(name, input);
  if (kind.kind === "agent") return [...(isIn(kind.prompt) ? [`${key} input prompt open`] : []), ...cutOutput];
  const reported = reportedDiffs(row);
  if (kind.kind === "patch" && reported.length === 0) return [...(hides(kind.text, patchLines) ? [`${key} input all`] : []), ...cutOutput];
  const own = kind.kind === "edit" ? kind.changes.map(diffOf) : [undefined];
  const diffs = (kind.kind === "edit" || kind.kind === "patch") && reported.length > 0 ? reported : own;
  if (diffs.every((diff) => diff !== undefined)) {
    const folded = diffs.flatMap(({ lines }, at) => {
      const shown = shownAtFirst(lines);
      const found = lines.flatMap((line, index) => (isIn(textOfLine(line)) ? [shown[index]] : []));
      return found.length > 0 && !found.includes(true) ? [`${key} diff ${at} all`] : [];
    });
    return [...folded, ...cutOutput];
  }
  if (!mainOf(input) && typeof input === "object" && input !== null) return [...fieldsOver(`${key} input`, input, hides), ...cutOutput];
  const given = mainOf(input)?.text ?? asText(input);
  return [
    ...(hides(given, inputLines) ? [`${key} input all`] : []),
    ...cutOutput,
  ];
}

/** The switches of the fields that hide something. */
function fieldsOver(id: string, fields: object, hides: (text: string, lines: number) => boolean): string[] {
  return Object.entries(fields).flatMap(([name, value]: [string, unknown]): string[] => {
    if (typeof value === "string") return hides(value, fieldLines) ? [`${id} ${name} all`] : [];
    return typeof value === "object" && value !== null ? fieldsOver(`${id} ${name}`, value, hides) : [];
  });
}
