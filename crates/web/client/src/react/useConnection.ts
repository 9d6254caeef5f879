import { useSyncExternalStore } from "react";
import type { ConnectionSnapshot } from "../socket.js";
import { useTokenrail } from "./provider.js";

/** How the connection to the server is. */
export function useConnection(): ConnectionSnapshot {
  const { connection } = useTokenrail();
  return useSyncExternalStore(connection.subscribe, connection.snapshot, connection.snapshot);
}
