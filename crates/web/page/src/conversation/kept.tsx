// The list renders only visible rows. So the rows that the user has opened are remembered outside of the rows.
import { createContext, type ReactNode, useCallback, useContext, useState, useSyncExternalStore } from "react";

class Switches {
  readonly #on = new Map<string, boolean>();
  readonly #listeners = new Set<() => void>();

  get(key: string): boolean | undefined {
    return this.#on.get(key);
  }

  set(key: string, value: boolean): void {
    if (this.#on.get(key) === value) return;
    this.#on.set(key, value);
    for (const listener of [...this.#listeners]) listener();
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
}

const Kept = createContext(new Switches());

export function KeepOpen({ children }: { readonly children: ReactNode }) {
  const [kept] = useState(() => new Switches());
  return <Kept value={kept}>{children}</Kept>;
}

/** A switch whose state is kept while the conversation is shown. */
export function useKept(key: string, initial: boolean): [boolean, (value: boolean) => void] {
  const kept = useContext(Kept);
  const set = useCallback((value: boolean) => kept.set(key, value), [kept, key]);
  const value = useSyncExternalStore(kept.subscribe, () => kept.get(key));
  return [value ?? initial, set];
}

/** Turns these switches on, including those of rows that are not rendered. */
export function useUnfold(): (keys: readonly string[]) => void {
  const kept = useContext(Kept);
  return useCallback((keys) => keys.forEach((key) => kept.set(key, true)), [kept]);
}

/** Reads switches without following them. */
export function useIsKept(): (key: string) => boolean {
  const kept = useContext(Kept);
  return useCallback((key) => kept.get(key) === true, [kept]);
}
