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

/** The colours of the changes that were coloured. The path of a change, and so its language, is always the same. */
const known = new WeakMap<Diff, Colours>();

const none: Colours = new Map();

/** The colours of a change, once they are known. Until then, and in an unknown language, there are none. */
export function useColours(diff: Diff, language: string | undefined): Colours {
  const isWanted = useMemo(() => isColoured(diff.lines.map(textOfLine).join("\n"), language), [diff, language]);
  const grammars = useGrammars(isWanted);
  const [, setColoured] = useState<Diff>();
  useEffect(() => {
    if (!isWanted || !language || !grammars?.registered(language) || known.has(diff)) return;
    return inTurn(() => {
      known.set(diff, coloursOf(diff, language, grammars));
      setColoured(diff);
    });
  }, [isWanted, language, grammars, diff]);
  return (isWanted && known.get(diff)) || none;
}

/** Changes are coloured one at a time, because colouring several at once would block the page. */
const waiting = new Set<() => void>();
let isBusy = false;

/** Runs a job when the browser is idle, after the jobs before it. The returned function cancels it. */
function inTurn(job: () => void): () => void {
  waiting.add(job);
  if (!isBusy) next();
  return () => void waiting.delete(job);
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

/** The old and the new text are coloured as a whole, so that a string or a comment may have several lines. */
function coloursOf({ lines }: Diff, language: string, grammars: Lowlight): Colours {
  const colours = new Map<Line, readonly Stretch[]>();
  for (const other of ["+", "-"]) {
    const text = lines.filter(({ mark }) => mark !== other);
    const coloured = stretchesOf(grammars.highlight(language, text.map(textOfLine).join("\n")).children);
    text.forEach((line, at) => colours.set(line, coloured[at] ?? []));
  }
  return colours;
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
