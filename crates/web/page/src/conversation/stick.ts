// The list follows its end until the reader scrolls up, and again when the reader has come back to the end.
import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";

/** So near to the end counts as the end: browsers round, and a line may just have come. */
export const nearEnd = 48;

export interface Scrolled {
  /** Pixels between what is seen and the end. */
  readonly distance: number;
  /** The reader did it, and not the page, which scrolls too, and moves rows when their heights become known. */
  readonly byReader: boolean;
}

export function nextFollowing(following: boolean, { distance, byReader }: Scrolled): boolean {
  if (distance <= nearEnd) return true;
  return byReader ? false : following;
}

/** Where a list stands. */
interface Place {
  readonly top: number;
  readonly height: number;
}

/**
 * Up, in a list that is as high as before: nobody but a reader does that, be it by a search of the browser's. When rows
 * above become known to be lower, the list moves up too, but its height has changed as well.
 */
export function isMovedUp(before: Place, now: Place): boolean {
  return now.top < before.top - 1 && now.height === before.height;
}

/** How long after a turn of the wheel or a key a scroll is still the reader's. */
const gestureMs = 400;

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
    const stop = listen(element, (scrolled) => follow(nextFollowing(now.current, scrolled)));
    // Released at once: by the time the list has scrolled, quick output has pinned it to its end again.
    const turned = ({ deltaY }: WheelEvent) => {
      if (deltaY < 0 && element.clientHeight < element.scrollHeight) follow(false);
    };
    element.addEventListener("wheel", turned, { passive: true });
    return () => {
      observer?.disconnect();
      stop();
      element.removeEventListener("wheel", turned);
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

/** Tells of each scroll, and whether a gesture of the reader was behind it. */
function listen(element: HTMLElement, tell: (scrolled: Scrolled) => void): () => void {
  let gestureAt = Number.NEGATIVE_INFINITY;
  let held = false;
  const gesture = () => {
    gestureAt = performance.now();
  };
  const hold = () => {
    held = true;
  };
  const letGo = () => {
    if (held) gesture();
    held = false;
  };
  let before = placeOf(element);
  const scroll = () => {
    const now = placeOf(element);
    const byReader = held || performance.now() - gestureAt < gestureMs || isMovedUp(before, now);
    before = now;
    tell({ distance: now.height - now.top - element.clientHeight, byReader });
  };
  const gestures = ["wheel", "touchmove", "keydown"] as const;
  for (const name of gestures) element.addEventListener(name, gesture, { passive: true });
  element.addEventListener("pointerdown", hold);
  element.addEventListener("scroll", scroll, { passive: true });
  window.addEventListener("pointerup", letGo);
  return () => {
    for (const name of gestures) element.removeEventListener(name, gesture);
    element.removeEventListener("pointerdown", hold);
    element.removeEventListener("scroll", scroll);
    window.removeEventListener("pointerup", letGo);
  };
}
