import { type RefObject, useLayoutEffect, useState, useSyncExternalStore } from "react";

import { followStored, storedChanged } from "../../ui/stored.ts";

/** How differences are shown: the old and the new lines one below the other, or side by side. */
export const layouts = ["unified", "split"] as const;
export type Layout = (typeof layouts)[number];

const key = "tokenrail-diff";

/** On a narrower place, in pixels, the lines would break too often to be compared side by side. */
const splitPixels = 640;

/** A window in which the list of changed files can be that wide: beside the list of agents, which has 19rem. */
export const roomForSplit = "(min-width: 59rem)";

/** The layout if the browser allows no storage. */
let unkept: Layout = "unified";

/** The layout of all differences. It is remembered for all tabs of this browser. */
export function useLayout(): [layout: Layout, setLayout: (layout: Layout) => void] {
  return [useSyncExternalStore(followStored, kept), setLayout];
}

/** Whether an element is wide enough for two columns. */
export function useIsWide(frame: RefObject<HTMLElement | null>): boolean {
  const [isWide, setWide] = useState(false);
  useLayoutEffect(() => {
    const element = frame.current;
    if (!element) return;
    const look = () => setWide(element.clientWidth >= splitPixels);
    look();
    if (typeof ResizeObserver === "undefined") return;
    const observer = new ResizeObserver(look);
    observer.observe(element);
    return () => observer.disconnect();
  }, [frame]);
  return isWide;
}

function kept(): Layout {
  try {
    return layouts.find((layout) => layout === localStorage.getItem(key)) ?? "unified";
  } catch {
    return unkept;
  }
}

function setLayout(layout: Layout): void {
  unkept = layout;
  try {
    localStorage.setItem(key, layout);
  } catch {
    // The layout then applies until the page is loaded again.
  }
  storedChanged();
}
