// The list follows its end until the reader scrolls up, and again when the reader has come back to the end.
import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";

import { isWriting } from "../ui/keys.ts";

/** So near to the end counts as the end: browsers round, and a line may just have come. */
export const nearEnd = 48;

/** Where a list stands. */
export interface Place {
  readonly top: number;
  readonly height: number;
}

/** How long after a turn of the wheel or a key a scroll is still the reader's, and the end that he saw still the end. */
const gestureMs = 400;

export interface Scrolled {
  readonly before: Place;
  readonly now: Place;
  /** How much of the list is seen. */
  readonly seen: number;
  /** A gesture of the reader to the same side is behind it, and `before` is where the list stood a moment ago. */
  readonly byGesture: boolean;
}

/**
 * Whether the list follows its end after a scroll. The page scrolls too: to the end, and when rows above become known to
 * be higher or lower, which changes the height of the list as well. So only a move up leaves the end, and only one down
 * comes back to it; and as an end that runs on is never reached, a reader need only come to where it was.
 */
export function nextFollowing(following: boolean, { before, now, seen, byGesture }: Scrolled): boolean {
  const moved = now.top - before.top;
  const byReader = byGesture || now.height === before.height;
  if (Math.abs(moved) <= 1) return following;
  if (moved > 0) return following || (byReader && isNear(Math.min(before.height, now.height), now.top, seen));
  return following && (!byReader || isNear(now.height, now.top, seen));
}

function isNear(end: number, top: number, seen: number): boolean {
  return end - top - seen <= nearEnd;
}

/** What a gesture asks for before anything has scrolled: by then quick output may have moved the end, or the list. */
export function meant(following: boolean, pixels: number, { top, height }: Place, seen: number): boolean {
  if (height <= seen || pixels === 0) return following;
  if (pixels < 0) return false;
  return following || isNear(height, top + pixels, seen);
}

export interface Stick {
  readonly following: boolean;
  readonly toEnd: () => void;
  /** Something else takes the reader elsewhere: a search, a key. */
  readonly release: () => void;
}

export function useStickToEnd(list: RefObject<HTMLElement | null>, content: unknown): Stick {
  const [following, setFollowing] = useState(true);
  const now = useRef(true);
  const follow = useCallback((value: boolean) => {
    now.current = value;
    setFollowing(value);
  }, []);
  const pin = useCallback(() => {
    const element = list.current;
    if (element && now.current) element.scrollTop = element.scrollHeight;
  }, [list]);
  useLayoutEffect(pin, [pin, content]);
  useEffect(() => {
    const element = list.current;
    if (!element) return;
    // Rows get their heights after they are drawn, and the window may change its own.
    const observer = typeof ResizeObserver === "undefined" ? undefined : new ResizeObserver(pin);
    observer?.observe(element);
    if (element.firstElementChild) observer?.observe(element.firstElementChild);
    const stop = listen(element, {
      scrolled: (scrolled) => follow(nextFollowing(now.current, scrolled)),
      asked: (pixels) => {
        follow(meant(now.current, pixels, placeOf(element), element.clientHeight));
        pin();
      },
    });
    return () => {
      observer?.disconnect();
      stop();
    };
  }, [list, pin, follow]);
  const toEnd = useCallback(() => {
    follow(true);
    pin();
  }, [follow, pin]);
  const release = useCallback(() => follow(false), [follow]);
  return { following, toEnd, release };
}

function placeOf({ scrollTop, scrollHeight }: HTMLElement): Place {
  return { top: scrollTop, height: scrollHeight };
}

interface Heard {
  readonly scrolled: (scrolled: Scrolled) => void;
  /** A gesture that will scroll the list by so many pixels: up is less than 0. */
  readonly asked: (pixels: number) => void;
}

/** Tells of each gesture and of each scroll. */
function listen(element: HTMLElement, { scrolled, asked }: Heard): () => void {
  const leaving = new AbortController();
  const options = { passive: true, signal: leaving.signal };
  let gestureAt = Number.NEGATIVE_INFINITY;
  let held = false;
  /** Where to the newest gesture goes; 0 where that is not known. */
  let pixels = 0;
  let before = { ...placeOf(element), at: performance.now() };
  const look = () => {
    before = { ...placeOf(element), at: performance.now() };
  };
  const gesture = (event: Event, asks: number) => {
    gestureAt = performance.now();
    pixels = asks;
    if (!isTakenInside(event, element, pixels)) asked(pixels);
    look();
  };
  const scroll = () => {
    const now = placeOf(element);
    const since = performance.now() - before.at;
    const recent = since < gestureMs && (held || performance.now() - gestureAt < gestureMs);
    const byGesture = recent && pixels * (now.top - before.top) >= 0;
    scrolled({ before, now, seen: element.clientHeight, byGesture });
    look();
  };
  let finger = 0;
  element.addEventListener("wheel", (event) => gesture(event, pixelsOf(event, element)), options);
  element.addEventListener("keydown", (event) => gesture(event, pixelsOfKey(event, element)), options);
  element.addEventListener("touchstart", ({ touches }) => (finger = touches[0]?.clientY ?? 0), options);
  element.addEventListener(
    "touchmove",
    (event) => {
      const now = event.touches[0]?.clientY ?? finger;
      gesture(event, finger - now);
      finger = now;
    },
    options,
  );
  element.addEventListener(
    "pointerdown",
    () => {
      held = true;
      pixels = 0;
      look();
    },
    options,
  );
  window.addEventListener(
    "pointerup",
    () => {
      if (held) gestureAt = performance.now();
      held = false;
    },
    options,
  );
  element.addEventListener("scroll", scroll, options);
  return () => leaving.abort();
}

/** A line, where a browser counts the wheel in lines. */
const linePixels = 20;

function pixelsOf({ deltaY, deltaMode }: WheelEvent, { clientHeight }: HTMLElement): number {
  if (deltaMode === WheelEvent.DOM_DELTA_LINE) return deltaY * linePixels;
  return deltaMode === WheelEvent.DOM_DELTA_PAGE ? deltaY * clientHeight : deltaY;
}

/** How far a key scrolls, about; `End` and `Home` are the list's own. */
function pixelsOfKey(event: KeyboardEvent, { clientHeight }: HTMLElement): number {
  const { key, shiftKey, target, defaultPrevented } = event;
  if (defaultPrevented || isWriting(target) || (key === " " && target instanceof HTMLButtonElement)) return 0;
  if (key === "PageUp" || (key === " " && shiftKey)) return -clientHeight;
  if (key === "PageDown" || key === " ") return clientHeight;
  if (key === "ArrowUp") return -2 * linePixels;
  return key === "ArrowDown" ? 2 * linePixels : 0;
}

/** Whether something in the list scrolls instead of it: a long output, for example. */
function isTakenInside({ target }: Event, list: HTMLElement, pixels: number): boolean {
  for (let at = target; at instanceof Element && at !== list; at = at.parentElement) {
    const room = pixels < 0 ? at.scrollTop : at.scrollHeight - at.clientHeight - at.scrollTop;
    if (room > 1 && /auto|scroll/.test(getComputedStyle(at).overflowY)) return true;
  }
  return false;
}
