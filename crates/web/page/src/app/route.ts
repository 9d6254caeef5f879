import { useCallback, useSyncExternalStore } from "react";

import { agentIn, isView, pathOf } from "../connection/address.ts";

const moved = "tokenrail:moved";

/** The agent in the URL, or null on the first page. `isMissing`: the URL has no view. */
export function useRoute(): [agentId: string | null, go: (agentId: string | null) => void, isMissing: boolean] {
  const path = useSyncExternalStore(subscribe, () => location.pathname);
  const go = useCallback((agentId: string | null) => {
    const next = pathOf(agentId);
    if (next === location.pathname) return;
    history.pushState(null, "", next);
    window.dispatchEvent(new Event(moved));
  }, []);
  return [agentIn(path), go, !isView(path)];
}

function subscribe(listener: () => void): () => void {
  window.addEventListener("popstate", listener);
  window.addEventListener(moved, listener);
  return () => {
    window.removeEventListener("popstate", listener);
    window.removeEventListener(moved, listener);
  };
}
