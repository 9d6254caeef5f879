import { useCallback, useEffect, useRef, useState } from "react";

/** The agents that a user has selected, and how to select more. */
export interface Selection {
  /** Undefined while the user does not select. */
  readonly ids: ReadonlySet<string> | undefined;
  /** Selects one agent, or all from the last selected one to this. The function is always the same. */
  readonly toggle: (id: string, withRange: boolean) => void;
  /** Begins another selection, without any agent. */
  readonly begin: () => void;
  /** Takes these out of the selection, which ends with its last agent. */
  readonly remove: (ids: readonly string[]) => void;
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
  const become = useCallback((now: ReadonlySet<string> | undefined) => {
    // A range does not begin in an earlier selection.
    last.current = undefined;
    setIds(now);
  }, []);
  const begin = useCallback(() => become(new Set()), [become]);
  const end = useCallback(() => become(undefined), [become]);
  const remove = useCallback((done: readonly string[]) => {
    setIds((before) => {
      const left = [...(before ?? [])].filter((id) => !done.includes(id));
      return left.length > 0 || (before && before.size === 0) ? new Set(left) : undefined;
    });
  }, []);
  return { ids, toggle, begin, remove, end };
}
