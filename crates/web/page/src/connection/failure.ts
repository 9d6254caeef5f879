import { TokenrailError } from "@tokenrail/client";
import { useConnection } from "@tokenrail/client/react";
import { useEffect, useState } from "react";

/** Whether there was no response, so that it is not known what the request has done. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof TokenrailError && (error.code === "network" || error.code === "outcome_unknown");
}

/** Whether the server refused the request because the session has ended. After a login, it can be sent again. */
export function isLoggedOut(error: unknown): boolean {
  return error instanceof TokenrailError && error.status === 401;
}

/** Why something failed. That the server cannot be reached is forgotten when the connection is back. */
export function useFailure(): [failure: Error | undefined, setFailure: (failure: Error | undefined) => void] {
  const [failure, setFailure] = useState<Error>();
  const isOpen = useConnection().state === "open";
  useEffect(() => {
    if (isOpen) setFailure((now) => (isUnreachable(now) ? undefined : now));
  }, [isOpen]);
  return [failure, setFailure];
}
