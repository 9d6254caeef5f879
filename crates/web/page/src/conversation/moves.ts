import type { RefObject } from "react";

import { useShortcut } from "../ui/shortcuts.tsx";
import type { ListHandle } from "./MessageList.tsx";

/** The keys that move through the messages. */
export function useMoves(list: RefObject<ListHandle | null>, length: number): void {
  const move = (by: number) => {
    const at = list.current?.at();
    if (at === undefined || length === 0) return;
    const focused = document.activeElement?.closest("[data-index]") !== null;
    list.current?.show(Math.max(0, Math.min(length - 1, focused ? at + by : at)), true);
  };
  useShortcut("j", () => move(1));
  useShortcut("k", () => move(-1));
  useShortcut("r", toggleRaw);
  useShortcut("c", () => document.getElementById("composer-text")?.focus());
  useShortcut("End", () => list.current?.toEnd());
}

/** Toggles the raw JSON of the focused message, or else of the one under the pointer. */
function toggleRaw(): void {
  const focused = document.activeElement?.closest(".item");
  const row = focused ?? document.querySelector(".item:hover");
  row?.querySelector<HTMLButtonElement>("[data-testid=raw-toggle]")?.click();
}
