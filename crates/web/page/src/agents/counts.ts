import type { Agent } from "@tokenrail/client";
import { useTokenrail } from "@tokenrail/client/react";
import { useEffect, useMemo, useState } from "react";

import { isActive } from "./StatusBadge.tsx";

/** News tell of a change of state, not of each event: how many there are is asked for now and then. */
const lookEveryMs = 2_000;

/** The agents, with the number of events that the active ones have come to. */
export function useCounted(agents: readonly Agent[]): readonly Agent[] {
  const client = useTokenrail();
  const [heads, setHeads] = useState<ReadonlyMap<string, number>>(new Map());
  const busy = agents.some((agent) => isActive(agent.status));
  useEffect(() => {
    if (!busy) return;
    const leaving = new AbortController();
    const look = () => {
      if (document.hidden) return;
      const asked = client.activeAgents({ signal: leaving.signal });
      // One that fails is followed by another.
      asked.then(
        (active) => setHeads(new Map(active.map(({ id, head }) => [id, head]))),
        () => undefined,
      );
    };
    const timer = setInterval(look, lookEveryMs);
    return () => {
      clearInterval(timer);
      leaving.abort();
    };
  }, [client, busy]);
  return useMemo(() => agents.map((agent) => withHead(agent, heads.get(agent.id))), [agents, heads]);
}

function withHead(agent: Agent, head = 0): Agent {
  return head > agent.head ? { ...agent, head } : agent;
}
