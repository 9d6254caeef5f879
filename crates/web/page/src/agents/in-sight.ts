import { type RefObject, useLayoutEffect, useRef } from "react";

/** For this time after the user has scrolled the list, it does not move by itself. */
const restMs = 1_500;

/**
 * Scrolls the list if the chosen agent is out of sight: when the user opens it, and when it has moved to another group.
 * Returns the function that the list calls when it is scrolled.
 */
export function useInSight(list: RefObject<HTMLElement | null>, current: string | null, group: string | undefined): () => void {
  const scrolledAt = useRef(-Infinity);
  const isOwn = useRef(false);
  const opened = useRef<string>(null);
  useLayoutEffect(() => {
    if (current === null) opened.current = null;
    if (!list.current || group === undefined) return;
    const isScrolling = performance.now() - scrolledAt.current < restMs;
    // If the user has just opened the agent, the list moves in any case.
    if (opened.current === current && isScrolling) return;
    opened.current = current;
    if (show(list.current)) isOwn.current = true;
  }, [list, current, group]);
  return () => {
    if (!isOwn.current) scrolledAt.current = performance.now();
    isOwn.current = false;
  };
}

/** Scrolls only this list: `scrollIntoView` would also move what is around it. Returns whether it has moved. */
function show(list: HTMLElement): boolean {
  const row = list.querySelector("[aria-current]")?.getBoundingClientRect();
  if (!row) return false;
  const place = list.getBoundingClientRect();
  const before = list.scrollTop;
  if (row.top < place.top) list.scrollTop += row.top - place.top;
  else if (row.bottom > place.bottom) list.scrollTop += row.bottom - place.bottom;
  return list.scrollTop !== before;
}
