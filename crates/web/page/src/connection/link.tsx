import { useConnection } from "@tokenrail/client/react";
import { createContext, useCallback, useContext, useState } from "react";

/**
 * `away`: the connection is lost, so what the page shows is old. `catching-up`: the connection is back, and missed events
 * are arriving.
 */
export type Phase = "live" | "away" | "catching-up";

const Link = createContext<Phase>("live");
export const LinkProvider = Link.Provider;

/** How current the page is. Clocks and rates stop unless it is `live`. */
export function usePhase(): Phase {
  return useContext(Link);
}

/** Follows the connection. The returned function says that all missed events are shown. */
export function useLink(): [phase: Phase, onCaughtUp: () => void] {
  const { state, error } = useConnection();
  const [phase, setPhase] = useState<Phase>("live");
  // The first attempt to connect, and each retry, is `connecting`: it changes nothing. A connection that nobody needs is
  // closed without an error.
  const isLost = state === "waiting" || (state === "closed" && error !== undefined);
  if (isLost && phase !== "away") setPhase("away");
  if (state === "open" && phase === "away") setPhase("catching-up");
  const onCaughtUp = useCallback(() => setPhase((now) => (now === "catching-up" ? "live" : now)), []);
  return [phase, onCaughtUp];
}
