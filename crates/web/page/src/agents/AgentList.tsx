import type { Agent } from "@tokenrail/client";
import { preloadAgentMessages, useTokenrail } from "@tokenrail/client/react";
import { memo, useDeferredValue, useMemo, useState } from "react";

import { useNow } from "../app/now.ts";
import { compact, counted, since } from "../ui/format.ts";
import { Icon } from "../ui/Icon.tsx";
import { Trouble } from "../ui/Trouble.tsx";
import { StatusBadge } from "./StatusBadge.tsx";

/**
 * How often ages are updated. New agents show seconds, so this is a compromise between accuracy and constant change.
 */
const ageEveryMs = 10_000;

/** All entries are rendered, up to this number. To find further agents, the user filters. */
const shownAgents = 300;

interface Props {
  readonly agents: readonly Agent[];
  /** How many agents are active, including older ones that are not listed. */
  readonly active: number;
  readonly loading: boolean;
  readonly error?: Error | undefined;
  readonly current: string | null;
  readonly onOpen: (id: string) => void;
  readonly onRetry: () => void;
  /** Loads older agents. Absent if there are none. */
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
          {isKnown && (onMore ? `${agents.length} or more` : `${agents.length} in total`)}
        </span>
      </div>
      {agents.length > 4 && (
        <label className="field-with-icon">
          <Icon name="search" />
          <input
            type="search"
            placeholder="Filter by name, prompt, type, status or id"
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
      {agents.length > 0 && shown.length === 0 && (
        <p className="hint">
          {onMore ? "No loaded agents match. Load older agents to search them too." : "No agents match."}
        </p>
      )}
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
        <p className="hint">Use the filter to find {counted(shown.length - shownAgents, "more agent")}.</p>
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
            {compact(agent.head)} {agent.head === 1 ? "event" : "events"} · {age}
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

/** The name of the agent, or else the first line of its prompt. */
export function titleOf(agent: Agent): string {
  return agent.name || agent.prompt.trim().split("\n", 1)[0] || agent.id;
}

function matches(agent: Agent, wanted: string): boolean {
  if (!wanted) return true;
  return [agent.name, agent.type, agent.status, agent.prompt, agent.id].some((text) =>
    text?.toLowerCase().includes(wanted),
  );
}
