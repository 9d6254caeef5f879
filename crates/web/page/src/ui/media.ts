import { useCallback, useSyncExternalStore } from "react";

/** Below this width, the list of agents is a drawer. The style sheet has the same number. */
export const phone = "(max-width: 820px)";

export function useMedia(query: string): boolean {
  const subscribe = useCallback(
    (listener: () => void) => {
      const media = matchMedia(query);
      media.addEventListener("change", listener);
      return () => media.removeEventListener("change", listener);
    },
    [query],
  );
  return useSyncExternalStore(subscribe, () => matchMedia(query).matches);
}
