import type { Agent } from "@tokenrail/client";
import { preloadAgentMessages, useTokenrail } from "@tokenrail/client/react";
import { memo, type ReactNode, useDeferredValue, useMemo, useState } from "react";

import { pathOf } from "../app/address.ts";
import { useNow } from "../app/now.ts";
import { compact, counted, since } from "../ui/format.ts";
import { Icon } from "../ui/Icon.tsx";
import { Trouble } from "../ui/Trouble.tsx";
import { needsYou, StatusBadge } from "./StatusBadge.tsx";
import { titleOf } from "./title.ts";

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
  /** Asks the browser for the permission to notify. Absent if there is nothing to ask. */
  readonly onNotify?: (() => void) | undefined;
  /** Loads older agents. Absent if there are none. */
  readonly onMore?: (() => void) | undefined;
}

export function AgentList({ agents, active, loading, error, current, onOpen, onRetry, onNotify, onMore }: Props) {
  const [filter, setFilter] = useState("");
  const wanted = useDeferredValue(filter.trim().toLowerCase());
  const now = useNow(ageEveryMs);
  const shown = useMemo(() => agents.filter((agent) => matches(agent, wanted)), [agents, wanted]);
  const waiting = useMemo(() => shown.filter(needsYou).sort(longestFirst), [shown]);
  const others = useMemo(() => shown.filter((agent) => !needsYou(agent)), [shown]);
  const item = (agent: Agent) => (
    <AgentItem
      key={agent.id}
      agent={agent}
      age={since(agent.createdAt, now)}
      current={agent.id === current}
      onOpen={onOpen}
    />
  );
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
      <div className="agent-list" data-testid="agents">
        {waiting.length > 0 && <NeedsYou onNotify={onNotify}>{waiting.map(item)}</NeedsYou>}
        {(others.length > 0 || onMore) && (
          <ol>
            {others.slice(0, shownAgents).map(item)}
            {onMore && (
              <li>
                <button type="button" className="button wide" onClick={onMore}>
                  Load older agents
                </button>
              </li>
            )}
          </ol>
        )}
      </div>
      {others.length > shownAgents && (
        <p className="hint">Use the filter to find {counted(others.length - shownAgents, "more agent")}.</p>
      )}
    </nav>
  );
}

/** The agents that wait for the answer to a permission request. */
function NeedsYou({ onNotify, children }: { onNotify: Props["onNotify"]; children: ReactNode }) {
  return (
    <section className="needs-you" aria-labelledby="needs-you" data-testid="needs-you">
      <div className="needs-you-head">
        <h3 id="needs-you">Needs you</h3>
        {onNotify && (
          <button type="button" className="link" data-testid="notify" onClick={onNotify}>
            Notify me
          </button>
        )}
      </div>
      <ol>{children}</ol>
    </section>
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
        href={pathOf(agent.id)}
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
          <StatusBadge agent={agent} />
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

function longestFirst(one: Agent, other: Agent): number {
  return (one.waitingSince ?? "").localeCompare(other.waitingSince ?? "");
}

function matches(agent: Agent, wanted: string): boolean {
  if (!wanted) return true;
  const state = needsYou(agent) ? "needs you" : agent.status;
  return [agent.name, agent.type, state, agent.prompt, agent.id].some((text) =>
    text?.toLowerCase().includes(wanted),
  );
}
