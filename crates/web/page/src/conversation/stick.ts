// The list follows its end until the user scrolls up, and again after the user has returned to the end.
import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";

import { isWriting } from "../ui/keys.ts";
import { type TallRequest, tallRequestIn } from "./tall-request.ts";

/** A position this close to the end counts as the end: browsers round, and a line may just have been added. */
export const nearEnd = 48;

/** The scroll position of a list. */
export interface Place {
  readonly top: number;
  readonly height: number;
}

/**
 * For this time after a turn of the wheel or a key, a scroll counts as the user's, and the end that was visible then
 * still counts as the end.
 */
const gestureMs = 400;

export interface Scrolled {
  readonly before: Place;
  readonly now: Place;
  /** The visible height of the list. */
  readonly seen: number;
  /** Whether the user made a gesture in the same direction. `before` is the position of the list shortly before. */
  readonly byGesture: boolean;
}

/**
 * Whether the list follows its end after a scroll. The page scrolls by itself too: to the end, and if rows above turn
 * out to be higher or lower, which also changes the height of the list. So only a scroll up leaves the end, and only a
 * scroll down returns to it. A growing end can never be reached, so it is enough if the user reaches the place where
 * the end was.
 */
export function nextFollowing(following: boolean, { before, now, seen, byGesture }: Scrolled): boolean {
  const moved = now.top - before.top;
  const byReader = isByReader({ before, now, byGesture });
  if (Math.abs(moved) <= 1) return following;
  if (moved > 0) return following || (byReader && isNear(Math.min(before.height, now.height), now.top, seen));
  return following && (!byReader || isNear(now.height, now.top, seen));
}

function isByReader({ before, now, byGesture }: Omit<Scrolled, "seen">): boolean {
  return byGesture || now.height === before.height;
}

function isNear(end: number, top: number, seen: number): boolean {
  return end - top - seen <= nearEnd;
}

/**
 * What a gesture intends, before anything has scrolled. By the time of the scroll, fast output may have moved the end
 * or the list.
 */
export function meant(following: boolean, pixels: number, { top, height }: Place, seen: number): boolean {
  if (height <= seen || pixels === 0) return following;
  if (pixels < 0) return false;
  return following || isNear(height, top + pixels, seen);
}

export interface Stick {
  readonly following: boolean;
  readonly toEnd: () => void;
  /** Something else moves the user away from the end, such as a search or a key. */
  readonly release: () => void;
}

export function useStickToEnd(list: RefObject<HTMLElement | null>, content: unknown): Stick {
  const [following, setFollowing] = useState(true);
  const now = useRef(true);
  const follow = useCallback((value: boolean) => {
    now.current = value;
    setFollowing(value);
  }, []);
  const request = useTallRequest();
  const pin = useCallback(() => {
    const element = list.current;
    if (element && now.current) element.scrollTop = request.place(element) ?? element.scrollHeight;
  }, [list, request]);
  useLayoutEffect(pin, [pin, content]);
  useEffect(() => {
    const element = list.current;
    if (!element) return;
    // Rows get their heights after they are rendered, and the size of the window may change.
    const observer = typeof ResizeObserver === "undefined" ? undefined : new ResizeObserver(pin);
    observer?.observe(element);
    if (element.firstElementChild) observer?.observe(element.firstElementChild);
    const byReader = (value: boolean) => {
      // The user who comes to the end has passed the request.
      if (value && !now.current) request.pass(element);
      follow(value);
    };
    const stop = listen(element, {
      scrolled: (scrolled) => {
        if (request.isAt(scrolled.now.top) || (request.isPlaced() && !isByReader(scrolled))) return;
        byReader(nextFollowing(request.leave() ? false : now.current, scrolled));
      },
      asked: (pixels) => {
        const following = pixels !== 0 && request.leave() ? false : now.current;
        byReader(meant(following, pixels, placeOf(element), element.clientHeight));
        pin();
      },
    });
    return () => {
      observer?.disconnect();
      stop();
    };
  }, [list, pin, follow, request]);
  const toEnd = useCallback(() => {
    request.leave();
    follow(true);
    pin();
  }, [follow, pin, request]);
  const release = useCallback(() => {
    request.leave();
    follow(false);
  }, [follow, request]);
  return { following, toEnd, release };
}

/** Instead of the end, the list first shows the top of a request that does not fit, until the user scrolls. */
function useTallRequest() {
  const [request] = useState(() => {
    let placed: TallRequest | undefined;
    let read: string | undefined;
    return {
      /** Where the list must scroll to, if there is a request that the user has not read. */
      place: (list: HTMLElement): number | undefined => {
        const found = tallRequestIn(list);
        placed = found?.id === read ? undefined : found;
        return placed?.top;
      },
      isPlaced: () => placed !== undefined,
      isAt: (top: number) => placed !== undefined && Math.abs(top - placed.top) <= 1,
      /** Returns whether the list showed the top of a request. */
      leave: (): boolean => {
        if (!placed) return false;
        read = placed.id;
        placed = undefined;
        return true;
      },
      pass: (list: HTMLElement) => {
        read = tallRequestIn(list)?.id ?? read;
      },
    };
  });
  return request;
}

function placeOf({ scrollTop, scrollHeight }: HTMLElement): Place {
  return { top: scrollTop, height: scrollHeight };
}

interface Heard {
  readonly scrolled: (scrolled: Scrolled) => void;
  /** Reports a gesture that will scroll the list by this many pixels. Negative means up. */
  readonly asked: (pixels: number) => void;
}

/** Reports each gesture and each scroll. */
function listen(element: HTMLElement, { scrolled, asked }: Heard): () => void {
  const leaving = new AbortController();
  const options = { passive: true, signal: leaving.signal };
  let gestureAt = Number.NEGATIVE_INFINITY;
  let held = false;
  /** The direction and distance of the newest gesture; 0 if not known. */
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

/** The height of a line, for browsers that report the wheel in lines. */
const linePixels = 20;

function pixelsOf({ deltaY, deltaMode }: WheelEvent, { clientHeight }: HTMLElement): number {
  if (deltaMode === WheelEvent.DOM_DELTA_LINE) return deltaY * linePixels;
  return deltaMode === WheelEvent.DOM_DELTA_PAGE ? deltaY * clientHeight : deltaY;
}

/** The approximate distance that a key scrolls. The list itself handles `End` and `Home`. */
function pixelsOfKey(event: KeyboardEvent, { clientHeight }: HTMLElement): number {
  const { key, shiftKey, target, defaultPrevented } = event;
  if (defaultPrevented || isWriting(target) || (key === " " && target instanceof HTMLButtonElement)) return 0;
  if (key === "PageUp" || (key === " " && shiftKey)) return -clientHeight;
  if (key === "PageDown" || key === " ") return clientHeight;
  if (key === "ArrowUp") return -2 * linePixels;
  return key === "ArrowDown" ? 2 * linePixels : 0;
}

/** Whether an element inside the list scrolls instead of the list, for example a long output. */
function isTakenInside({ target }: Event, list: HTMLElement, pixels: number): boolean {
  for (let at = target; at instanceof Element && at !== list; at = at.parentElement) {
    const room = pixels < 0 ? at.scrollTop : at.scrollHeight - at.clientHeight - at.scrollTop;
    if (room > 1 && /auto|scroll/.test(getComputedStyle(at).overflowY)) return true;
  }
  return false;
}
