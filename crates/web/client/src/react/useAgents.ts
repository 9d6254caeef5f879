import { useCallback, useSyncExternalStore } from "react";
import { AgentList, type AgentListOptions, type AgentsSnapshot } from "../agents.js";
import { useTokenrail } from "./provider.js";
import { SharedStores } from "./shared.js";

const ARCHIVED = "archived";
const lists = new SharedStores((client, key) => new AgentList(client, { archived: key === ARCHIVED }));

export interface UseAgents extends AgentsSnapshot {
  /** Reads the list again. */
  refetch(): void;
  /** Reads older agents too. */
  loadMore(): void;
}

/**
 * The agents that are not archived (with `archived`, those that are), newest first and kept up to date. If `wanted` is
 * false, nothing is requested, and `loading` stays true.
 */
export function useAgents(wanted = true, { archived = false }: AgentListOptions = {}): UseAgents {
  const client = useTokenrail();
  const shared = lists.get(client, archived ? ARCHIVED : "");
  const list = shared.value;
  const subscribe = useCallback(
    (listener: () => void) => {
      if (!wanted) return () => {};
      const release = shared.use();
      const unsubscribe = list.subscribe(listener);
      return () => {
        unsubscribe();
        release();
      };
    },
    [shared, list, wanted],
  );
  const snapshot = useSyncExternalStore(subscribe, list.snapshot, list.snapshot);
  return { ...snapshot, refetch: list.refetch, loadMore: list.loadMore };
}
