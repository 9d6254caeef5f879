// What a reader has opened stays open when its row leaves the screen and comes back: the list draws only what is seen.
import { createContext, type ReactNode, useCallback, useContext, useState } from "react";

const Kept = createContext<Map<string, boolean>>(new Map());

export function KeepOpen({ children }: { readonly children: ReactNode }) {
  const [kept] = useState(() => new Map<string, boolean>());
  return <Kept value={kept}>{children}</Kept>;
}

/** A switch that remembers, for as long as the conversation is shown. */
export function useKept(key: string, initial: boolean): [boolean, (value: boolean) => void] {
  const kept = useContext(Kept);
  const [, again] = useState(0);
  const set = useCallback(
    (value: boolean) => {
      kept.set(key, value);
      again((times) => times + 1);
    },
    [kept, key],
  );
  return [kept.get(key) ?? initial, set];
}
