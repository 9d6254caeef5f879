import type { AgentType } from "@tokenrail/client";
import { useConnection, useTokenrail } from "@tokenrail/client/react";
import { useCallback, useEffect, useEffectEvent, useState } from "react";

/** A failed request is repeated after this time, and immediately when the connection is back. */
const againMs = 5_000;

export interface AgentTypes {
  readonly types: readonly AgentType[];
  /** Why the types are not known. */
  readonly error?: Error | undefined;
  readonly retry: () => void;
}

/** The types that can be launched. They are requested when the form is shown. */
export function useAgentTypes(wanted: boolean): AgentTypes {
  const client = useTokenrail();
  const isLive = useConnection().state === "open";
  const [types, setTypes] = useState<readonly AgentType[]>([]);
  const [error, setError] = useState<Error>();
  const [attempt, setAttempt] = useState(0);
  const retry = useCallback(() => setAttempt((before) => before + 1), []);
  const isMissing = wanted && types.length === 0;
  useEffect(() => {
    if (!isMissing) return;
    const leaving = new AbortController();
    const became = (known: readonly AgentType[], failure?: Error) => {
      if (leaving.signal.aborted) return;
      setTypes(known);
      setError(failure);
    };
    client.agentTypes({ signal: leaving.signal }).then(became, (failure: Error) => became([], failure));
    return () => leaving.abort();
  }, [client, isMissing, attempt]);
  const again = useEffectEvent(() => {
    if (isMissing && error) retry();
  });
  useEffect(() => {
    if (isLive) again();
  }, [isLive]);
  useEffect(() => {
    if (!error) return;
    const timer = setTimeout(() => again(), againMs);
    return () => clearTimeout(timer);
  }, [error]);
  return { types, error, retry };
}
