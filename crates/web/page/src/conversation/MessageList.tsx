import { type FocusEvent, type KeyboardEvent, type ReactNode, type RefObject, useEffect, useImperativeHandle, useLayoutEffect, useRef, useState } from "react";
import { Virtualizer, type VirtualizerHandle } from "virtua";

import { count, counted } from "../ui/format.ts";
import { Icon } from "../ui/Icon.tsx";
import { soon } from "../ui/soon.ts";
import { Painted } from "./painted.ts";
import { hasKey, openQuestionOf, type Row } from "./row.ts";
import { RowView } from "./RowView.tsx";
import { useStickToEnd } from "./stick.ts";
import { showTopOfRequest } from "./tall-request.ts";

/** The list renders this many pixels beyond the visible part, so that a turn of the wheel shows no gap. */
const drawnBeyond = 600;

/** How many pixels of the previous row stay visible above a row that is scrolled to. */
const aboveShown = 24;

/** The maximum estimated height of a text that has not been rendered. */
const highestText = 1_400;

/** The minimum height above the list, in pixels: the bar of the page and the header of the conversation. */
const aboveList = 120;

export interface ListHandle {
  /** Scrolls to a row, and optionally gives it the focus. */
  readonly show: (index: number, focus?: boolean) => void;
  /** The focused row, or the first visible one. */
  readonly at: () => number;
  readonly toEnd: () => void;
}

interface Props {
  readonly rows: readonly Row[];
  readonly plain: boolean;
  readonly found: number | undefined;
  /** Whether a turn is running. */
  readonly busy: boolean;
  /** Whether the messages before these rows are still being loaded. */
  readonly loading: boolean;
  readonly handle: RefObject<ListHandle | null>;
  readonly onRetry?: ((row: Row) => void) | undefined;
}

/** The conversation. Only the visible rows and some around them are in the document. */
export function MessageList({ rows, plain, found, busy, loading, handle, onRetry }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const list = useRef<VirtualizerHandle>(null);
  const stage = useStage(rows);
  const shift = useShift(rows);
  const stick = useStickToEnd(scroller, rows);
  const seen = useSeen(rows, stick.following);
  const onFocus = useHandle(handle, scroller, list, stick);
  const working = busy && !isTalking(rows.at(-1)) && <Working asks={rows.some((row) => openQuestionOf(row))} />;
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
        onFocus={onFocus}
      >
        <div className="messages-content" role="list">
          {stage.isListed && rows.length > 0 && (
            <Painted value={stage.isPainted}>
              <Virtualizer
                ref={list}
                data={rows}
                scrollRef={scroller}
                bufferSize={stage.isPainted ? drawnBeyond : 0}
                shift={shift}
                keepMounted={newest(rows.length)}
              >
                {(row, index) => (
                  <Item key={row.key} index={index} count={rows.length} isFound={index === found}>
                    <RowView row={row} plain={plain} onRetry={onRetry} />
                  </Item>
                )}
              </Virtualizer>
            </Painted>
          )}
        </div>
        {working}
      </div>
      {stage.isCovered && stick.following && (
        <FirstPicture rows={rows} plain={plain} isNewest={!stage.isListed}>
          {working}
        </FirstPicture>
      )}
      {loading && rows.length > 0 && <p className="earlier">Loading earlier messages…</p>}
      {!stick.following && <ToEnd scroller={scroller} more={seen.more} onClick={stick.toEnd} />}
    </div>
  );
}

/** Lets others scroll the list. Returns what notes the focused row. */
function useHandle(
  handle: Props["handle"],
  scroller: RefObject<HTMLDivElement | null>,
  list: RefObject<VirtualizerHandle | null>,
  stick: ReturnType<typeof useStickToEnd>,
): (event: FocusEvent) => void {
  const focused = useRef<number | undefined>(undefined);
  const show = (index: number, focus = false) => {
    stick.release();
    list.current?.scrollToIndex(index, { align: "start", offset: -aboveShown });
    if (focus) focusRow(scroller.current, index);
  };
  useImperativeHandle(handle, () => ({
    show,
    toEnd: stick.toEnd,
    at: () => focused.current ?? list.current?.findItemIndex(list.current.scrollOffset) ?? 0,
  }));
  return (event) => {
    focused.current = indexOf(event.target);
  };
}

interface ItemProps {
  readonly index: number;
  readonly count: number;
  readonly isFound: boolean;
  readonly children: ReactNode;
}

function Item({ index, count, isFound, children }: ItemProps) {
  return (
    <div
      role="listitem"
      className="item"
      tabIndex={-1}
      data-index={index}
      data-found={isFound || undefined}
      aria-setsize={count}
      aria-posinset={index + 1}
    >
      {children}
    </div>
  );
}

interface ToEndProps {
  readonly scroller: RefObject<HTMLElement | null>;
  readonly more: number;
  readonly onClick: () => void;
}

/** It would lie on the buttons of an open request, which is more important. */
function ToEnd({ scroller, more, onClick }: ToEndProps) {
  const isHidden = useHasRequest(scroller);
  const name = more > 0 ? `Jump to the end: ${counted(more, "new message")}` : "Jump to the end";
  if (isHidden) return null;
  return (
    <button type="button" className="button to-end" data-testid="to-end" aria-label={name} title={name} onClick={onClick}>
      <Icon name="arrowDown" />
      {more > 0 && count(more)}
    </button>
  );
}

/** Whether a request that waits for the user is in view. */
function useHasRequest(scroller: RefObject<HTMLElement | null>): boolean {
  const [hasRequest, setRequest] = useState(false);
  useEffect(() => {
    const list = scroller.current;
    if (!list) return;
    const leaving = new AbortController();
    const look = () => {
      const { top, bottom } = list.getBoundingClientRect();
      const cards = [...list.querySelectorAll('.question[data-state="open"]')].map((card) => card.getBoundingClientRect());
      setRequest(cards.some((card) => card.top < bottom && top < card.bottom));
    };
    look();
    list.addEventListener("scroll", look, { passive: true, signal: leaving.signal });
    return () => leaving.abort();
  }, [scroller]);
  return hasRequest;
}

/**
 * The indices of the last two rows. These may grow by several screens at once, and the list learns their positions only
 * a frame later.
 */
function newest(count: number): number[] {
  return [count - 2, count - 1].filter((index) => index >= 0);
}

/**
 * The stages in which a conversation appears: a static picture of its end, then the list behind the picture, then the
 * list alone.
 */
interface Stage {
  readonly isCovered: boolean;
  readonly isListed: boolean;
  /** Whether something has been painted. The next steps are less urgent. */
  readonly isPainted: boolean;
}

/**
 * Before the list can show its end, it must measure its rows and scroll. If that takes several frames, the picture
 * covers it.
 */
function useStage(rows: readonly Row[]): Stage {
  const [painted, setPainted] = useState(0);
  const isLong = useRef<boolean>(undefined);
  const isThere = rows.length > 0;
  if (isThere) isLong.current ??= firstOfTheLast(rows) > 0;
  const last = isLong.current ? 2 : 1;
  useEffect(
    () => (isThere && painted < last ? soon(() => setPainted(painted + 1)) : undefined),
    [isThere, painted, last],
  );
  const isCovered = isLong.current === true && painted < last;
  return { isCovered, isListed: !isCovered || painted > 0, isPainted: painted > 0 };
}

/** The last rows, as they will look in the list. They are aligned at the bottom, so only a high request is measured. */
function FirstPicture({ rows, plain, isNewest, children }: PictureProps) {
  const first = firstOfTheLast(rows);
  const picture = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (picture.current) showTopOfRequest(picture.current);
  });
  return (
    <div className="messages first-picture" ref={picture} aria-hidden="true" inert>
      <div className="messages-content">
        <Painted value={false}>
          {rows.slice(first).map((row, index) => (
            <div
              key={row.key}
              className="item"
              data-index={isNewest ? first + index : undefined}
              aria-setsize={rows.length}
              aria-posinset={first + index + 1}
            >
              <RowView row={row} plain={plain} />
            </div>
          ))}
        </Painted>
      </div>
      {children}
    </div>
  );
}

interface PictureProps extends Pick<Props, "rows" | "plain"> {
  /** Whether there is no list yet that has the same rows. */
  readonly isNewest: boolean;
  readonly children: ReactNode;
}

/**
 * Whether rows were added above the existing ones. The existing rows must not move. Notices are inserted among rows,
 * and do not count.
 */
function useShift(rows: readonly Row[]): boolean {
  const first = rows[0]?.key;
  const last = useRef({ first, length: rows.length });
  const above = first === last.current.first ? 0 : rows.findIndex((row) => hasKey(row, last.current.first));
  const shift = above > 0 && 2 * above > rows.length - last.current.length;
  useLayoutEffect(() => {
    last.current = { first, length: rows.length };
  });
  return shift;
}

/** The index from which on the rows are at least as high as the screen. */
function firstOfTheLast(rows: readonly Row[]): number {
  let pixels = 0;
  for (let index = rows.length - 1; index > 0; index--) {
    const row = rows[index];
    pixels += row ? roughHeight(row) : 0;
    if (pixels > innerHeight - aboveList) return index;
  }
  return 0;
}

/** The minimum height of a row. */
function roughHeight(row: Row): number {
  // A call that succeeded may be folded to its head.
  if (row.kind === "group" || row.kind === "thinking" || (row.kind === "tool" && row.state === "done")) return 28;
  if (row.kind === "tool") return 120;
  if (row.kind !== "text" && row.kind !== "prompt") return 50;
  return 40 + Math.min(highestText, (row.text.length / 120) * 22 + linesIn(row.text) * 14);
}

/** The number of line breaks, up to the number that fits on a screen. */
function linesIn(text: string): number {
  let lines = 0;
  for (let at = text.indexOf("\n"); at >= 0 && lines < 100; at = text.indexOf("\n", at + 1)) lines++;
  return lines;
}

/** Whether the row itself shows that more text will arrive. */
function isTalking(row: Row | undefined): boolean {
  if (!row) return false;
  return row.kind === "tool" ? row.state === "writing" || row.state === "running" : "streaming" in row && row.streaming;
}

function Working({ asks }: { readonly asks: boolean }) {
  return (
    <p className="working" data-testid="working">
      {!asks && <span className="spinner" aria-hidden="true" />} {asks ? "Waiting for your answer…" : "Working…"}
    </p>
  );
}

/** How many rows were added since the user left the end. Rows that are added above, from the history, do not count. */
function useSeen(rows: readonly Row[], following: boolean): { more: number } {
  const newest = rows.at(-1)?.key;
  const [left, setLeft] = useState(newest);
  useEffect(() => {
    if (following) setLeft(newest);
  }, [following, newest]);
  if (following) return { more: 0 };
  return { more: rows.length - 1 - rows.findLastIndex((row) => hasKey(row, left)) };
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

/** A row that is not rendered yet appears some frames later. */
function focusRow(scroller: HTMLElement | null, index: number, frames = 10): void {
  const row = scroller?.querySelector<HTMLElement>(`[data-index="${index}"]`);
  if (row) row.focus({ preventScroll: true });
  else if (frames > 0) requestAnimationFrame(() => focusRow(scroller, index, frames - 1));
}
