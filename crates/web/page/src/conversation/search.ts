import { useDeferredValue, useEffect, useMemo } from "react";

import type { Row } from "./row.ts";
import { textOf } from "./text.ts";

/** The texts of rows that have been searched: a row is the same object until it changes. */
const texts = new WeakMap<Row, string>();

function searchable(row: Row): string {
  let text = texts.get(row);
  if (text === undefined) {
    text = textOf(row).toLowerCase();
    texts.set(row, text);
  }
  return text;
}

/** The rows that hold the words. */
export function matchesOf(rows: readonly Row[], words: string): number[] {
  const wanted = words.trim().toLowerCase();
  if (!wanted) return [];
  return rows.flatMap((row, index) => (searchable(row).includes(wanted) ? [index] : []));
}

export function useMatches(rows: readonly Row[], words: string): number[] {
  const wanted = useDeferredValue(words);
  return useMemo(() => matchesOf(rows, wanted), [rows, wanted]);
}

const highlight = "found";

/** So many places are marked at most: they are looked for in what is drawn, which is not much. */
const longestMark = 500;

/** Marks the words wherever they are drawn, without touching the document. */
export function useMarks(words: string, drawn: unknown): void {
  useEffect(() => {
    if (typeof CSS === "undefined" || !("highlights" in CSS)) return;
    const wanted = words.trim().toLowerCase();
    const list = document.getElementById("events");
    if (!wanted || !list) return;
    const mark = () => CSS.highlights.set(highlight, new Highlight(...rangesIn(list, wanted)));
    mark();
    list.addEventListener("scroll", mark, { passive: true });
    return () => {
      list.removeEventListener("scroll", mark);
      CSS.highlights.delete(highlight);
    };
  }, [words, drawn]);
}

function rangesIn(element: Element, wanted: string): Range[] {
  const ranges: Range[] = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node && ranges.length < longestMark; node = walker.nextNode()) {
    const text = node.textContent?.toLowerCase() ?? "";
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
      // Some letters change their length with their case: then the place is not known.
      if (at + wanted.length > (node.textContent?.length ?? 0)) break;
      const range = document.createRange();
      range.setStart(node, at);
      range.setEnd(node, at + wanted.length);
      ranges.push(range);
    }
  }
  return ranges;
}
