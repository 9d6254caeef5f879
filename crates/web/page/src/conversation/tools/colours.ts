// Colours the lines of a change like code.
import type { ElementContent, RootContent } from "hast";
import { useEffect, useMemo, useState } from "react";

import { isColoured, type Lowlight, useGrammars } from "../../markdown/highlight.tsx";
import { soon } from "../../ui/soon.ts";
import { type Diff, type Line, textOfLine } from "./diff.ts";

/** A part of a line with one colour. */
export interface Stretch {
  readonly length: number;
  /** The classes of the colour. Empty for plain text. */
  readonly names: string;
}

export type Colours = ReadonlyMap<Line, readonly Stretch[]>;

/** Only this many characters of a change are coloured, because colouring more would block the page for several frames. */
const longestColoured = 10_000;

interface Coloured {
  /** How many lines were wanted. */
  readonly count: number;
  readonly colours: Colours;
}

/** The colours of the changes that were coloured. The path of a change, and so its language, is always the same. */
const known = new WeakMap<Diff, Coloured>();

const none: Colours = new Map();

/**
 * The colours of the lines of a change that are shown, once they are known. Until then, and in an unknown language, there
 * are none.
 */
export function useColours(diff: Diff, shown: readonly boolean[], language: string | undefined): Colours {
  const lines = useMemo(() => beginningOf(diff.lines.filter((_, at) => shown[at])), [diff, shown]);
  const isWanted = useMemo(() => isColoured(lines.map(textOfLine).join("\n"), language), [lines, language]);
  const grammars = useGrammars(isWanted);
  const [, setColoured] = useState<readonly Line[]>();
  useEffect(() => {
    if (!isWanted || !language || !grammars?.registered(language)) return;
    if (lines.length <= (known.get(diff)?.count ?? 0)) return;
    const colours = new Map<Line, readonly Stretch[]>();
    const colour = (without: string) => () => addColours(colours, lines.filter(({ mark }) => mark !== without), language, grammars);
    const finish = () => {
      known.set(diff, { count: lines.length, colours });
      setColoured(lines);
    };
    return inTurn([colour("+"), colour("-"), finish]);
  }, [isWanted, language, grammars, diff, lines]);
  return (isWanted && known.get(diff)?.colours) || none;
}

function beginningOf(lines: readonly Line[]): readonly Line[] {
  let length = 0;
  const end = lines.findIndex((line) => (length += textOfLine(line).length + 1) > longestColoured);
  return end < 0 ? lines : lines.slice(0, end);
}

/** Texts are coloured one at a time, because colouring several at once would block the page. */
const waiting = new Set<() => void>();
let isBusy = false;

/** Runs jobs when the browser is idle, after those before them. The returned function cancels them. */
function inTurn(jobs: readonly (() => void)[]): () => void {
  for (const job of jobs) waiting.add(job);
  if (!isBusy) next();
  return () => {
    for (const job of jobs) waiting.delete(job);
  };
}

function next(): void {
  isBusy = waiting.size > 0;
  if (!isBusy) return;
  soon(() => {
    const [job] = waiting;
    if (job) waiting.delete(job);
    job?.();
    next();
  });
}

/** The old or the new text is coloured as a whole, so that a string or a comment may have several lines. */
function addColours(colours: Map<Line, readonly Stretch[]>, lines: readonly Line[], language: string, grammars: Lowlight): void {
  const coloured = stretchesOf(grammars.highlight(language, lines.map(textOfLine).join("\n")).children);
  lines.forEach((line, at) => colours.set(line, coloured[at] ?? []));
}

/** The stretches of each line. */
function stretchesOf(nodes: readonly (RootContent | ElementContent)[]): Stretch[][] {
  const lines: Stretch[][] = [[]];
  const add = (node: RootContent | ElementContent, names: string): void => {
    if (node.type === "element") {
      const own = node.properties.className;
      for (const child of node.children) add(child, Array.isArray(own) ? own.join(" ") : names);
    } else if (node.type === "text") {
      node.value.split("\n").forEach((part, at) => {
        if (at > 0) lines.push([]);
        if (part) lines.at(-1)?.push({ length: part.length, names });
      });
    }
  };
  for (const node of nodes) add(node, "");
  return lines;
}
