// Highlights search results in the rendered rows, and scrolls to a result.
import { useEffect } from "react";

const highlight = "found";

/** The maximum number of highlighted results. Only rendered rows are searched. */
const longestMark = 500;

/** Rows that must first be rendered and opened appear within this number of frames. */
const framesUntilDrawn = 12;

/** How many times the list is scrolled to a row. Rows that load meanwhile can move it. */
const mostTries = 8;

/** Where in the height of a scrolling element a result is placed. */
const place = 1 / 3;

/** Highlights the words in all rendered rows, without changing the document. */
export function useMarks(words: string): void {
  useEffect(() => {
    if (typeof CSS === "undefined" || !("highlights" in CSS)) return;
    const wanted = words.trim().toLowerCase();
    const list = document.getElementById("events");
    if (!wanted || !list) return;
    let frame = 0;
    const mark = () => CSS.highlights.set(highlight, new Highlight(...rangesIn(list, wanted)));
    const changed = new MutationObserver(() => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(mark);
    });
    mark();
    changed.observe(list, { childList: true, characterData: true, subtree: true });
    return () => {
      changed.disconnect();
      cancelAnimationFrame(frame);
      CSS.highlights.delete(highlight);
    };
  }, [words]);
}

/**
 * Scrolls to the first result in a row, once the row is rendered. `show` scrolls the list to the row. The returned
 * function cancels.
 */
export function revealed(index: number, words: string, show: () => void): () => void {
  const wanted = words.trim().toLowerCase();
  const list = document.getElementById("events");
  let frame = 0;
  let tries = 0;
  const look = (frames: number) => {
    const row = list?.querySelector(`[data-index="${index}"]`);
    const [range] = row && wanted ? rangesIn(row, wanted) : [];
    if (list && range) bring(range, list);
    // The row may first be rendered, then opened, then measured. Each step moves it.
    if (frames > 0) frame = requestAnimationFrame(() => look(frames - 1));
    else if (!row && tries < mostTries) go();
  };
  const go = () => {
    tries += 1;
    show();
    frame = requestAnimationFrame(() => look(framesUntilDrawn));
  };
  go();
  return () => cancelAnimationFrame(frame);
}

/** Scrolls the elements around a result as far as necessary, from the innermost one to the list. */
function bring(range: Range, list: Element): void {
  for (let at = range.startContainer.parentElement; at; at = at === list ? null : at.parentElement) {
    if (at !== list && !/auto|scroll/.test(getComputedStyle(at).overflowY)) continue;
    const [box, found] = [at.getBoundingClientRect(), range.getBoundingClientRect()];
    if (found.top < box.top || found.bottom > box.bottom) at.scrollTop += found.top - box.top - box.height * place;
  }
}

function rangesIn(element: Element, wanted: string): Range[] {
  const ranges: Range[] = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node && ranges.length < longestMark; node = walker.nextNode()) {
    const text = node.textContent?.toLowerCase() ?? "";
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
      // Some letters change their length with their case. Then the position of the result is not known.
      if (at + wanted.length > (node.textContent?.length ?? 0)) break;
      const range = document.createRange();
      range.setStart(node, at);
      range.setEnd(node, at + wanted.length);
      ranges.push(range);
    }
  }
  return ranges;
}
