// Marks what the search has found wherever it is drawn, and brings it to where it is seen.
import { useEffect } from "react";

const highlight = "found";

/** So many places are marked at most: they are looked for in what is drawn, which is not much. */
const longestMark = 500;

/** Rows that have to be drawn and opened first are there so many frames later. */
const framesUntilDrawn = 12;

/** The list is sent to a row so many times at most: rows that load meanwhile can leave it somewhere else. */
const mostTries = 8;

/** What is found is brought so far into whatever scrolls, of its height. */
const place = 1 / 3;

/** Marks the words wherever they are drawn, without touching the document. */
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

/** Scrolls to the first of the words in a row, once the row is drawn. `show` sends the list there. Returns how to cancel. */
export function revealed(index: number, words: string, show: () => void): () => void {
  const wanted = words.trim().toLowerCase();
  const list = document.getElementById("events");
  let frame = 0;
  let tries = 0;
  const look = (frames: number) => {
    const row = list?.querySelector(`[data-index="${index}"]`);
    const [range] = row && wanted ? rangesIn(row, wanted) : [];
    if (list && range) bring(range, list);
    // It may be drawn first, then opened, then measured: each moves it.
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

/** Scrolls what is around a place as far as it is out of sight, from the inside to the list. */
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
