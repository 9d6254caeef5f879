import { useSyncExternalStore } from "react";
import type { ConnectionSnapshot } from "../socket.js";
import { useTokenrail } from "./provider.js";

/** The state of the connection to the server. */
export function useConnection(): ConnectionSnapshot {
  const { connection } = useTokenrail();
  return useSyncExternalStore(connection.subscribe, connection.snapshot, connection.snapshot);
}
