import { useTokenrail } from "@tokenrail/client/react";
import { useEffect, useState } from "react";

import { useAgentId } from "./agent-id.ts";
import type { TextRow } from "./row.ts";

/** A message of fewer events took so little time that its end may stand for its beginning. */
const longEvents = 20;

/** When long messages began, by agent and number of their first event. */
const known = new Map<string, string>();

/** More are not remembered. The oldest are forgotten. */
const mostKnown = 2_000;

function learn(key: string, time: string): void {
  known.set(key, time);
  const [oldest] = known.keys();
  if (known.size > mostKnown && oldest !== undefined) known.delete(oldest);
}

/** Whether the time of this row is the end of a long message, instead of its beginning. */
export function isLong({ began, sequence }: TextRow): boolean {
  return sequence - began >= longEvents;
}

/**
 * When a long message began. A growing message has this time. A stored one has only the time of its end and the number of
 * its first event, so the server is asked for that event when the row is on screen.
 */
export function useBegan({ began, time, streaming }: TextRow): string {
  const client = useTokenrail();
  const agentId = useAgentId();
  const key = `${agentId} ${began}`;
  const [, setLoaded] = useState("");
  useEffect(() => {
    if (streaming) return learn(key, time);
    if (known.has(key)) return;
    const leaving = new AbortController();
    client.events(agentId, { since: began - 1, limit: 1, signal: leaving.signal }).then(
      ({ messages: [first] }) => {
        if (first?.sequenceNumber !== began) return;
        learn(key, first.createdAt);
        setLoaded(key);
      },
      // Without an answer, the time of the end stays.
      () => undefined,
    );
    return () => leaving.abort();
  }, [client, agentId, key, began, time, streaming]);
  return streaming ? time : (known.get(key) ?? time);
}
