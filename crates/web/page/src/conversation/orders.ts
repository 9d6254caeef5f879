import { useEffect, useEffectEvent } from "react";

/** What the palette can ask the conversation on screen to do. */
export type Order = "rename" | "search" | "replay" | "changes" | "details";

const listeners = new Map<Order, Set<() => void>>();

/** Asks the conversation on screen to do something. */
export function askTo(order: Order): void {
  // Later, because the dialog that asks for this closes first. A control outside of it cannot have the focus before.
  setTimeout(() => {
    for (const listener of listeners.get(order) ?? []) listener();
  });
}

/** Calls `begin` when something asks the conversation on screen to do this. */
export function useAskedTo(order: Order, begin: () => void): void {
  const act = useEffectEvent(begin);
  useEffect(() => {
    const listen = () => act();
    const known = listeners.get(order) ?? new Set();
    listeners.set(order, known.add(listen));
    return () => void known.delete(listen);
  }, [order]);
}
