// The list renders only visible rows. So what the user has opened, chosen or written in a row is remembered outside of it.
import { createContext, type ReactNode, useCallback, useContext, useState, useSyncExternalStore } from "react";

class Values {
  readonly #values = new Map<string, unknown>();
  readonly #listeners = new Set<() => void>();

  get(key: string): unknown {
    return this.#values.get(key);
  }

  set(key: string, value: unknown): void {
    if (this.#values.get(key) === value) return;
    this.#values.set(key, value);
    for (const listener of [...this.#listeners]) listener();
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
}

const Kept = createContext(new Values());

export function KeepOpen({ children }: { readonly children: ReactNode }) {
  const [kept] = useState(() => new Values());
  return <Kept value={kept}>{children}</Kept>;
}

/** A switch whose state is kept while the conversation is shown. */
export function useKept(key: string, initial: boolean): [boolean, (value: boolean) => void] {
  return useKeptValue(key, initial);
}

/** A value that is kept while the conversation is shown. Each key has values of one type. */
export function useKeptValue<T>(key: string, initial: T): [T, (value: T) => void] {
  const kept = useContext(Kept);
  const set = useCallback((value: T) => kept.set(key, value), [kept, key]);
  const value = useSyncExternalStore(kept.subscribe, () => kept.get(key)) as T | undefined;
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
