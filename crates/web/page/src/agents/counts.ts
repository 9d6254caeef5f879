import type { Agent } from "@tokenrail/client";
import { useTokenrail } from "@tokenrail/client/react";
import { useEffect, useMemo, useState } from "react";

import { isActive } from "../agent/StatusBadge.tsx";

/** News report a change of status, but not each event. So the numbers of events are requested at this interval. */
const lookEveryMs = 2_000;

/** There are no news of agents that are not in the list. Their number is less urgent. */
const lookForOthersEveryMs = 10_000;

/** The client library loads this many agents at first, and the same number each time. */
const pageOfAgents = 100;

interface Counted {
  /** The agents, with the current numbers of events of the active ones. */
  readonly agents: readonly Agent[];
  /** How many agents are active, including those that are not in the list. */
  readonly active: number;
}

/**
 * The listed agents, and how many agents are active in total. `others` is true if there may be agents that are not
 * listed.
 */
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
      // A failed request is ignored, because the next one follows soon.
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

/** Whether there may be agents that are older than those in the list: the list has as many as were requested. */
export function useOlder(listed: number, loadMore: () => void): { isThere: boolean; load: () => void } {
  const [asked, setAsked] = useState(pageOfAgents);
  // If some agents are deleted later, the list is shorter, but its end has still not been reached.
  const [full, setFull] = useState(0);
  if (listed >= asked && full < asked) setFull(asked);
  const load = () => {
    setAsked(asked + pageOfAgents);
    loadMore();
  };
  return { isThere: full >= asked, load };
}
