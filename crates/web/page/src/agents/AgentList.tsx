import type { Agent } from "@tokenrail/client";
import { preloadAgentMessages, useTokenrail } from "@tokenrail/client/react";
import { memo, useDeferredValue, useMemo, useState } from "react";

import { useNow } from "../app/now.ts";
import { compact, counted, since } from "../ui/format.ts";
import { Icon } from "../ui/Icon.tsx";
import { Trouble } from "../ui/Trouble.tsx";
import { StatusBadge } from "./StatusBadge.tsx";

/** Ages are told in seconds at first: often enough to be right, seldom enough to be quiet. */
const ageEveryMs = 10_000;

/** The list is drawn whole: beyond this, whoever looks for an agent filters. */
const shownAgents = 300;

interface Props {
  readonly agents: readonly Agent[];
  /** How many are active, here and among the older ones. */
  readonly active: number;
  readonly loading: boolean;
  readonly error?: Error | undefined;
  readonly current: string | null;
  readonly onOpen: (id: string) => void;
  readonly onRetry: () => void;
  /** Reads older ones; absent where there are none. */
  readonly onMore?: (() => void) | undefined;
}

export function AgentList({ agents, active, loading, error, current, onOpen, onRetry, onMore }: Props) {
  const [filter, setFilter] = useState("");
  const wanted = useDeferredValue(filter.trim().toLowerCase());
  const now = useNow(ageEveryMs);
  const shown = useMemo(() => agents.filter((agent) => matches(agent, wanted)), [agents, wanted]);
  const isKnown = agents.length > 0 || !(loading || error);
  return (
    <nav className="agents" aria-label="Agents">
      <div className="agents-head">
        <h2>Agents</h2>
        <span className="muted" data-testid="agent-counts">
          {active ? `${active} active · ` : ""}
          {isKnown && (onMore ? `more than ${agents.length}` : `${agents.length} in all`)}
        </span>
      </div>
      {agents.length > 4 && (
        <label className="field-with-icon">
          <Icon name="search" />
          <input
            type="search"
            placeholder="Filter by name, type or status"
            aria-label="Filter agents"
            value={filter}
            onChange={(event) => setFilter(event.target.value)}
          />
        </label>
      )}
      {error && <Trouble error={error} what="cannot load the agents" onRetry={onRetry} />}
      {loading && agents.length === 0 && <AgentSkeleton />}
      {!loading && !error && agents.length === 0 && (
        <p className="hint">No agents yet. Launch one to see it here.</p>
      )}
      {agents.length > 0 && shown.length === 0 && <p className="hint">No agents match.</p>}
      <ol className="agent-list" data-testid="agents">
        {shown.slice(0, shownAgents).map((agent) => (
          <AgentItem
            key={agent.id}
            agent={agent}
            age={since(agent.createdAt, now)}
            current={agent.id === current}
            onOpen={onOpen}
          />
        ))}
        {onMore && (
          <li>
            <button type="button" className="button wide" onClick={onMore}>
              Load older agents
            </button>
          </li>
        )}
      </ol>
      {shown.length > shownAgents && (
        <p className="hint">{counted(shown.length - shownAgents, "more agent")}: use the filter to find them.</p>
      )}
    </nav>
  );
}

interface ItemProps {
  readonly agent: Agent;
  readonly age: string;
  readonly current: boolean;
  readonly onOpen: (id: string) => void;
}

const AgentItem = memo(function AgentItem({ agent, age, current, onOpen }: ItemProps) {
  const client = useTokenrail();
  return (
    <li>
      <a
        href={`/agents/${agent.id}`}
        className="agent"
        data-testid="agent"
        data-agent-id={agent.id}
        aria-current={current ? "page" : undefined}
        onPointerDown={() => preloadAgentMessages(client, agent.id)}
        onClick={(event) => {
          if (event.metaKey || event.ctrlKey || event.shiftKey) return;
          event.preventDefault();
          onOpen(agent.id);
        }}
      >
        <span className="agent-title">{titleOf(agent)}</span>
        <span className="agent-meta">
          <StatusBadge status={agent.status} />
          <span>{agent.type}</span>
          <span className="agent-counts">
            {compact(agent.head)} events · {age}
          </span>
        </span>
      </a>
    </li>
  );
});

function AgentSkeleton() {
  return (
    <div className="skeleton" aria-hidden="true">
      <span />
      <span />
      <span />
    </div>
  );
}

/** Its name, or else the first line of what it was asked. */
export function titleOf(agent: Agent): string {
  return agent.name || agent.prompt.trim().split("\n", 1)[0] || agent.id;
}

function matches(agent: Agent, wanted: string): boolean {
  if (!wanted) return true;
  return [agent.name, agent.type, agent.status, agent.prompt, agent.id].some((text) =>
    text?.toLowerCase().includes(wanted),
  );
}
