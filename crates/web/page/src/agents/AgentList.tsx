import type { Agent } from "@tokenrail/client";
import { preloadAgentMessages, useAgentMessages, useTokenrail } from "@tokenrail/client/react";
import { memo, type ReactNode, useDeferredValue, useMemo, useState } from "react";

import { pathOf } from "../app/address.ts";
import { useNow } from "../app/now.ts";
import { compact, counted, since } from "../ui/format.ts";
import { Trouble } from "../ui/Trouble.tsx";
import { everything, matches } from "./filter.ts";
import { FilterBar } from "./FilterBar.tsx";
import { dayOf, type Group, groupsOf } from "./groups.ts";
import { OriginTag, StatusBadge } from "./StatusBadge.tsx";
import { titleOf } from "./title.ts";

/**
 * How often ages are updated. New agents show seconds, so this is a compromise between accuracy and constant change.
 */
const ageEveryMs = 10_000;

/** All entries are rendered, up to this number. To find further agents, the user filters. */
const shownAgents = 300;

/** So few agents need no filter. */
const fewAgents = 4;

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
  const [filter, setFilter] = useState(everything);
  const wanted = useDeferredValue(filter);
  const now = useNow(ageEveryMs);
  const shown = useMemo(() => agents.filter((agent) => matches(agent, wanted)), [agents, wanted]);
  const today = dayOf(now);
  const groups = useMemo(() => groupsOf(shown.slice(0, shownAgents), today), [shown, today]);
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
      {agents.length > fewAgents && <FilterBar agents={agents} filter={filter} onChange={setFilter} />}
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
        {groups.map(({ name, agents: grouped }) => (
          <GroupOf key={name} name={name} onNotify={name === "Needs you" ? onNotify : undefined}>
            {grouped.map(item)}
          </GroupOf>
        ))}
        {onMore && (
          <button type="button" className="button wide" onClick={onMore}>
            Load older agents
          </button>
        )}
      </div>
      {shown.length > shownAgents && (
        <p className="hint">Use the filter to find {counted(shown.length - shownAgents, "more agent")}.</p>
      )}
    </nav>
  );
}

interface GroupProps {
  readonly name: Group["name"];
  readonly onNotify: Props["onNotify"];
  readonly children: ReactNode;
}

function GroupOf({ name, onNotify, children }: GroupProps) {
  const id = name.toLowerCase().replace(" ", "-");
  return (
    <section className="agent-group" aria-labelledby={id} data-testid={id}>
      <div className="agent-group-head">
        <h3 id={id}>{name}</h3>
        {onNotify && (
          <button
            type="button"
            className="link"
            title="Show a notification when an agent needs you while this page is hidden"
            data-testid="notify"
            onClick={onNotify}
          >
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
        title={agent.cwd}
        onPointerDown={() => preloadAgentMessages(client, agent.id)}
        onClick={(event) => {
          if (event.metaKey || event.ctrlKey || event.shiftKey) return;
          event.preventDefault();
          onOpen(agent.id);
        }}
      >
        <span className="agent-line">
          <span className="agent-title">{titleOf(agent)}</span>
          <OriginTag agent={agent} />
        </span>
        <span className="agent-meta">
          <StatusBadge agent={agent} />
          <span className="agent-type">{agent.type}</span>
          <span className="agent-counts">
            {current ? <CurrentHead agent={agent} /> : <Head head={agent.head} />} · {age}
          </span>
        </span>
      </a>
    </li>
  );
});

/** The number of events of the agent on screen. It is as new as the conversation, and newer than the list. */
function CurrentHead({ agent }: { readonly agent: Agent }) {
  const { last } = useAgentMessages(agent.id).transcript;
  return <Head head={Math.max(agent.head, last)} />;
}

function Head({ head }: { readonly head: number }) {
  return `${compact(head)} ${head === 1 ? "event" : "events"}`;
}

function AgentSkeleton() {
  return (
    <div className="skeleton" aria-hidden="true">
      <span />
      <span />
      <span />
    </div>
  );
}
