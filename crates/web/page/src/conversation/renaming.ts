import { useEffect, useEffectEvent } from "react";

const listeners = new Set<() => void>();

/** Lets the user rename the agent on screen. */
export function askToRename(): void {
  // Later, because the dialog that asks for this closes first. A control outside of it cannot have the focus before.
  setTimeout(() => {
    for (const listener of listeners) listener();
  });
}

/** Calls `begin` when something asks to rename the agent on screen. */
export function useRenaming(begin: () => void): void {
  const act = useEffectEvent(begin);
  useEffect(() => {
    const listen = () => act();
    listeners.add(listen);
    return () => void listeners.delete(listen);
  }, []);
}
