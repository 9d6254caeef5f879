import type { Agent } from "@tokenrail/client";
import { useTokenrail } from "@tokenrail/client/react";
import { useEffect, useMemo, useState } from "react";

import { isActive } from "./StatusBadge.tsx";

/** News tell of a change of state, not of each event: how many there are is asked for now and then. */
const lookEveryMs = 2_000;

/** Of agents that are not in the list there are no news at all; but there is no hurry. */
const lookForOthersEveryMs = 10_000;

/** The library reads so many agents at first, and as many more each time. */
const pageOfAgents = 100;

interface Counted {
  /** With the number of events that the active ones have come to. */
  readonly agents: readonly Agent[];
  /** How many agents are active, those that are not in the list among them. */
  readonly active: number;
}

/** The agents that are listed, and how many of all are active; `others` where there may be some that are not listed. */
export function useCounted(agents: readonly Agent[], others: boolean): Counted {
  const client = useTokenrail();
  const [heads, setHeads] = useState<ReadonlyMap<string, number>>(new Map());
  const busy = agents.some((agent) => isActive(agent.status));
  useEffect(() => {
    if (!busy && !others) return;
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
    if (others) look();
    const timer = setInterval(look, busy ? lookEveryMs : lookForOthersEveryMs);
    return () => {
      clearInterval(timer);
      leaving.abort();
    };
  }, [client, busy, others]);
  return useMemo(() => {
    const listed = new Set(agents.map(({ id }) => id));
    const unlisted = others ? [...heads.keys()].filter((id) => !listed.has(id)) : [];
    const active = agents.filter((agent) => isActive(agent.status)).length + unlisted.length;
    return { agents: agents.map((agent) => withHead(agent, heads.get(agent.id))), active };
  }, [agents, heads, others]);
}

function withHead(agent: Agent, head = 0): Agent {
  return head > agent.head ? { ...agent, head } : agent;
}

/** Whether there may be agents older than those of the list: as many came as were asked for. */
export function useOlder(listed: number, loadMore: () => void): { isThere: boolean; load: () => void } {
  const [asked, setAsked] = useState(pageOfAgents);
  // Some may be deleted afterwards: that brings nobody to the end.
  const [full, setFull] = useState(0);
  if (listed >= asked && full < asked) setFull(asked);
  const load = () => {
    setAsked(asked + pageOfAgents);
    loadMore();
  };
  return { isThere: full >= asked, load };
}
