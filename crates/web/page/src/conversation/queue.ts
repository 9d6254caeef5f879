import type { Agent, Turn } from "@tokenrail/client";
import { useTokenrail } from "@tokenrail/client/react";
import { useEffect, useState } from "react";

const none: readonly Turn[] = [];

/** The queued messages, in order. */
export function useQueue({ id, turn, queued }: Agent): readonly Turn[] {
  const client = useTokenrail();
  const [turns, setTurns] = useState(none);
  useEffect(() => {
    if (queued === 0) return;
    const leaving = new AbortController();
    const asked = client.turns(id, { signal: leaving.signal });
    // If the request fails, the number of queued messages is still known.
    asked.then(
      (all) => setTurns(all.filter((each) => each.status === "queued")),
      () => undefined,
    );
    return () => leaving.abort();
  }, [client, id, turn, queued]);
  return queued === 0 ? none : turns;
}
