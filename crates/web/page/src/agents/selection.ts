import { useCallback, useEffect, useRef, useState } from "react";

/** The agents that a user has selected, and how to select more. */
export interface Selection {
  /** Undefined while the user does not select. */
  readonly ids: ReadonlySet<string> | undefined;
  /** Selects one agent, or all from the last selected one to this. The function is always the same. */
  readonly toggle: (id: string, withRange: boolean) => void;
  /** Selects exactly these. */
  readonly set: (ids: readonly string[]) => void;
  readonly end: () => void;
}

/** `shown` are the ids of the agents in the order in which the user sees them. */
export function useSelection(shown: readonly string[]): Selection {
  const [ids, setIds] = useState<ReadonlySet<string>>();
  const order = useRef(shown);
  const last = useRef<string>(undefined);
  useEffect(() => {
    order.current = shown;
  }, [shown]);
  const toggle = useCallback((id: string, withRange: boolean) => {
    const from = withRange ? order.current.indexOf(last.current ?? id) : -1;
    const to = order.current.indexOf(id);
    last.current = id;
    setIds((before = new Set()) => {
      if (from >= 0 && to >= 0) {
        return new Set([...before, ...order.current.slice(Math.min(from, to), Math.max(from, to) + 1)]);
      }
      const after = new Set(before);
      if (!after.delete(id)) after.add(id);
      return after;
    });
  }, []);
  const set = useCallback((chosen: readonly string[]) => setIds(new Set(chosen)), []);
  const end = useCallback(() => setIds(undefined), []);
  return { ids, toggle, set, end };
}
