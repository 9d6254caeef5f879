import { useCallback, useSyncExternalStore } from "react";
import { AgentList, type AgentsSnapshot } from "../agents.js";
import { useTokenrail } from "./provider.js";
import { SharedStores } from "./shared.js";

const lists = new SharedStores((client) => new AgentList(client));

export interface UseAgents extends AgentsSnapshot {
  /** Reads the list again. */
  refetch(): void;
  /** Reads older agents too. */
  loadMore(): void;
}

/**
 * The agents, newest first and kept up to date. If `wanted` is false, nothing is requested, and `loading` stays true.
 */
export function useAgents(wanted = true): UseAgents {
  const client = useTokenrail();
  const shared = lists.get(client, "");
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
