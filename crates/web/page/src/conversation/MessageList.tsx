import { type KeyboardEvent, type RefObject, useEffect, useImperativeHandle, useLayoutEffect, useRef, useState } from "react";
import { Virtualizer, type VirtualizerHandle } from "virtua";

import { counted } from "../ui/format.ts";
import { Icon } from "../ui/Icon.tsx";
import { soon } from "../ui/soon.ts";
import type { Row } from "./row.ts";
import { RowView } from "./RowView.tsx";
import { useStickToEnd } from "./stick.ts";

/** Drawn beyond what is seen, in pixels: a turn of the wheel shows no gap. */
const drawnBeyond = 600;

/** A row that is shown has so many pixels of the one before it above it. */
const aboveShown = 24;

/** No text is thought to be higher than this before it is drawn. */
const highestText = 1_400;

/** At least so much of the window is above the list, in pixels: the bar of the page and the head of the conversation. */
const aboveList = 120;

export interface ListHandle {
  /** Shows a row, and puts the keyboard on it. */
  readonly show: (index: number, focus?: boolean) => void;
  /** The row that the keyboard is on, or the first one that is seen. */
  readonly at: () => number;
  readonly toEnd: () => void;
}

interface Props {
  readonly rows: readonly Row[];
  readonly plain: boolean;
  readonly found: number | undefined;
  /** A turn is on its way. */
  readonly busy: boolean;
  /** What was said before these rows is on its way. */
  readonly loading: boolean;
  readonly handle: RefObject<ListHandle | null>;
  readonly onRetry?: ((row: Row) => void) | undefined;
}

/** The conversation. Only the rows that are seen, and some around them, are in the document. */
export function MessageList({ rows, plain, found, busy, loading, handle, onRetry }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const list = useRef<VirtualizerHandle>(null);
  const { drawn, before, shift, isPainted } = useFirstTheLast(rows);
  const stick = useStickToEnd(scroller, rows);
  const seen = useSeen(rows, stick.following);
  const focused = useRef<number | undefined>(undefined);
  const show = (index: number, focus = false) => {
    stick.release();
    list.current?.scrollToIndex(index - before, { align: "start", offset: -aboveShown });
    if (focus) focusRow(scroller.current, index);
  };
  useImperativeHandle(handle, () => ({
    show,
    toEnd: stick.toEnd,
    at: () => focused.current ?? before + (list.current?.findItemIndex(list.current.scrollOffset) ?? 0),
  }));
  return (
    <div className="messages-frame">
      <div
        className="messages"
        ref={scroller}
        id="events"
        data-testid="messages"
        role="region"
        aria-label="Conversation"
        aria-busy={loading}
        tabIndex={0}
        onKeyDown={(event) => moveByKey(event, scroller.current, stick.toEnd)}
        onFocus={(event) => {
          focused.current = indexOf(event.target);
        }}
      >
        <div className="messages-content" role="list">
          {drawn.length > 0 && (
            <Virtualizer
              ref={list}
              data={drawn}
              scrollRef={scroller}
              bufferSize={isPainted ? drawnBeyond : 0}
              shift={shift}
              // The first picture of a list that scrolls to its end needs no measuring: all that is drawn is seen.
              ssrCount={before > 0 ? drawn.length : 0}
            >
              {(row, index) => (
                <div
                  key={row.key}
                  role="listitem"
                  className="item"
                  tabIndex={-1}
                  data-index={before + index}
                  data-found={before + index === found || undefined}
                  aria-setsize={rows.length}
                  aria-posinset={before + index + 1}
                >
                  <RowView row={row} plain={plain} onRetry={onRetry} />
                </div>
              )}
            </Virtualizer>
          )}
        </div>
        {busy && !isTalking(rows.at(-1)) && <Working asks={isAsking(rows.at(-1))} />}
      </div>
      {loading && rows.length > 0 && <p className="earlier">Loading what was said before…</p>}
      {!stick.following && (
        <button type="button" className="button to-end" data-testid="to-end" onClick={stick.toEnd}>
          <Icon name="arrowDown" /> {seen.more > 0 ? counted(seen.more, "new message") : "To the end"}
        </button>
      )}
    </div>
  );
}

/**
 * The list begins with its last rows, which are those that are seen; the others come above them when these have been
 * painted, and so do those that were still being read.
 */
function useFirstTheLast(rows: readonly Row[]): { drawn: readonly Row[]; before: number; shift: boolean; isPainted: boolean } {
  const [isPainted, setPainted] = useState(false);
  const isThere = rows.length > 0;
  useEffect(() => (isThere ? soon(() => setPainted(true)) : undefined), [isThere]);
  const before = isPainted ? 0 : firstOfTheLast(rows);
  const drawn = before > 0 ? rows.slice(before) : rows;
  const first = drawn[0]?.key;
  const last = useRef({ first, length: drawn.length });
  // Rows have come above those that were there, and not among them, as notices do: these are to stay where they are.
  const above = first === last.current.first ? 0 : drawn.findIndex(({ key }) => key === last.current.first);
  const shift = above > 0 && 2 * above > drawn.length - last.current.length;
  useLayoutEffect(() => {
    last.current = { first, length: drawn.length };
  });
  return { drawn, before, shift, isPainted };
}

/** From where on the rows are at least as high as a screen. */
function firstOfTheLast(rows: readonly Row[]): number {
  let pixels = 0;
  for (let index = rows.length - 1; index > 0; index--) {
    const row = rows[index];
    pixels += row ? roughHeight(row) : 0;
    if (pixels > innerHeight - aboveList) return index;
  }
  return 0;
}

/** At least so high it will be. */
function roughHeight(row: Row): number {
  if (row.kind === "tool") return 120;
  if (row.kind !== "text" && row.kind !== "prompt") return 50;
  return 40 + Math.min(highestText, (row.text.length / 120) * 22 + linesIn(row.text) * 14);
}

/** Line ends, of which a screen has room. */
function linesIn(text: string): number {
  let lines = 0;
  for (let at = text.indexOf("\n"); at >= 0 && lines < 100; at = text.indexOf("\n", at + 1)) lines++;
  return lines;
}

/** The row shows by itself that more is coming. */
function isTalking(row: Row | undefined): boolean {
  if (!row) return false;
  return row.kind === "tool" ? row.state === "writing" || row.state === "running" : "streaming" in row && row.streaming;
}

/** The agent waits for an answer. */
function isAsking(row: Row | undefined): boolean {
  return row?.kind === "question" && row.question.state === "open";
}

function Working({ asks }: { readonly asks: boolean }) {
  return (
    <p className="working" data-testid="working">
      <span className="spinner" aria-hidden="true" /> {asks ? "Waiting for your answer…" : "Working…"}
    </p>
  );
}

/** How many rows have come since the reader left the end. Those that come above, of what was said before, are not new. */
function useSeen(rows: readonly Row[], following: boolean): { more: number } {
  const newest = rows.at(-1)?.key;
  const [left, setLeft] = useState(newest);
  useEffect(() => {
    if (following) setLeft(newest);
  }, [following, newest]);
  if (following) return { more: 0 };
  return { more: rows.length - 1 - rows.findLastIndex(({ key }) => key === left) };
}

function moveByKey(event: KeyboardEvent, scroller: HTMLElement | null, toEnd: () => void): void {
  if (event.target !== event.currentTarget) return;
  if (event.key === "End") {
    event.preventDefault();
    toEnd();
  } else if (event.key === "Home" && scroller) {
    scroller.scrollTop = 0;
  }
}

function indexOf(element: EventTarget & Element): number | undefined {
  const item = element.closest<HTMLElement>("[data-index]");
  return item ? Number(item.dataset.index) : undefined;
}

/** A row that has to be drawn first is there some frames later. */
function focusRow(scroller: HTMLElement | null, index: number, frames = 10): void {
  const row = scroller?.querySelector<HTMLElement>(`[data-index="${index}"]`);
  if (row) row.focus({ preventScroll: true });
  else if (frames > 0) requestAnimationFrame(() => focusRow(scroller, index, frames - 1));
}
