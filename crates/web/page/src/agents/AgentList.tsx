import type { Agent, OpenQuestion } from "@tokenrail/client";
import { type ReactNode, useDeferredValue, useMemo, useRef, useState } from "react";

import { needsYou } from "../agent/StatusBadge.tsx";
import { since } from "../ui/format.ts";
import { useNow } from "../ui/now.ts";
import { Trouble } from "../ui/Trouble.tsx";
import { AgentActions } from "./AgentActions.tsx";
import { AgentItem } from "./AgentItem.tsx";
import { type Act, useBulk } from "./bulk.ts";
import { everything, type Filter, isFiltering, matches } from "./filter.ts";
import { dayOf, firstOf, type Group, groupsOf } from "./groups.ts";
import { useInSight } from "./in-sight.ts";
import { useSelection } from "./selection.ts";
import { FailedAgents, SelectionBar } from "./SelectionBar.tsx";
import { Tools } from "./Tools.tsx";

/**
 * How often ages are updated. New agents show seconds, so this is a compromise between accuracy and constant change.
 */
const ageEveryMs = 10_000;

/**
 * This many entries are rendered, and all agents that need the user. To find further agents, the user filters.
 */
const shownAgents = 300;

/** So few agents need no filter. */
const fewAgents = 4;

interface Props {
  readonly agents: readonly Agent[];
  /** The oldest open request of each agent, as far as they are known. */
  readonly asked?: ReadonlyMap<string, OpenQuestion>;
  /** How many agents are active, including older ones that are not listed. */
  readonly active: number;
  readonly loading: boolean;
  readonly error?: Error | undefined;
  readonly current: string | null;
  /** Opens an agent, or the launch form. */
  readonly onOpen: (id: string | null) => void;
  readonly onRetry: () => void;
  /** Asks the browser for the permission to notify. Absent if there is nothing to ask. */
  readonly onNotify?: (() => void) | undefined;
  /** Loads older agents. Absent if there are none. */
  readonly onMore?: (() => void) | undefined;
  /** Whether these are the archived agents. */
  readonly archived?: boolean;
  /** Shows the archived agents, or the others. */
  readonly onArchived?: (archived: boolean) => void;
}

export function AgentList(props: Props) {
  const { agents, active, loading, error, current, onOpen, onRetry, onNotify, onMore, archived = false } = props;
  const [filter, setFilter] = useState(everything);
  const wanted = useDeferredValue(filter);
  const now = useNow(ageEveryMs);
  const { shown, groups, hidden, order } = useGroups(agents, wanted, dayOf(now));
  const acting = useActing(order);
  const { selected, toggle, begin, end, bulk, selecting } = acting;
  const [actionsOf, setActionsOf] = useState<Agent>();
  const item = (agent: Agent) => (
    <AgentItem
      {...{ agent, onOpen, onSelect: toggle, onActions: setActionsOf }}
      key={agent.id}
      age={since(agent.createdAt, now)}
      question={props.asked?.get(agent.id)}
      now={needsYou(agent) ? now : undefined}
      current={agent.id === current}
      selected={selected?.has(agent.id)}
    />
  );
  const showArchived = (wanted: boolean) => {
    end();
    setFilter(everything);
    props.onArchived?.(wanted);
  };
  const isKnown = agents.length > 0 || !(loading || error);
  return (
    <nav className="agents" aria-label="Agents">
      <Head>
        {isKnown && <Counts agents={agents} active={active} archived={archived} isMore={onMore !== undefined} />}
      </Head>
      {!loading && (
        <Tools
          {...{ archived, agents, filter }}
          onArchived={showArchived}
          ref={selecting}
          busy={bulk.busy}
          selecting={selected !== undefined}
          onSelecting={agents.length > 0 ? (wanted) => (wanted ? begin() : end()) : undefined}
          onFilter={agents.length > fewAgents || isFiltering(filter) ? setFilter : undefined}
        />
      )}
      {error && <Trouble error={error} what="cannot load the agents" onRetry={onRetry} />}
      {agents.length === 0 && (loading ? <AgentSkeleton /> : !error && <Empty archived={archived} />)}
      {agents.length > 0 && shown.length === 0 && <NoMatch hasMore={onMore !== undefined} />}
      <Selected acting={acting} {...{ agents, wanted, archived }} />
      {actionsOf && (
        <AgentActions
          // The dialog stays if the agent leaves the list meanwhile, because another tab has archived it.
          agent={agents.find(({ id }) => id === actionsOf.id) ?? actionsOf}
          onSelect={() => toggle(actionsOf.id, false)}
          onAgain={() => onOpen(null)}
          onClose={() => setActionsOf(undefined)}
        />
      )}
      <Groups {...{ groups, current, item, onNotify, onMore }} isSelecting={selected !== undefined} />
      {hidden > 0 && <p className="hint">{notShown(hidden)}</p>}
    </nav>
  );
}

function notShown(hidden: number) {
  return hidden === 1
    ? "1 more agent is not shown. Use the filter to find it."
    : `${hidden} more agents are not shown. Use the filter to find them.`;
}

/** The agents that match the filter, in groups. `hidden` is how many of them are not in the groups, which are bounded. */
function useGroups(agents: readonly Agent[], wanted: Filter, today: string) {
  const shown = useMemo(() => agents.filter((agent) => matches(agent, wanted)), [agents, wanted]);
  const groups = useMemo(() => firstOf(groupsOf(shown, today), shownAgents), [shown, today]);
  const hidden = shown.length - groups.reduce((total, group) => total + group.agents.length, 0);
  const order = useMemo(() => groups.flatMap((group) => group.agents.map(({ id }) => id)), [groups]);
  return { shown, groups, hidden, order };
}

function Head({ children }: { readonly children: ReactNode }) {
  return (
    <div className="agents-head">
      <h2>Agents</h2>
      {children}
    </div>
  );
}

function Empty({ archived }: { readonly archived: boolean }) {
  const hint = archived ? "No agent is archived." : "No agents in this list. Launch one to see it here.";
  return <p className="hint">{hint}</p>;
}

function NoMatch({ hasMore }: { readonly hasMore: boolean }) {
  const hint = hasMore ? "No loaded agents match. Load older agents to search them too." : "No agents match.";
  return <p className="hint">{hint}</p>;
}

interface SelectedProps {
  readonly acting: ReturnType<typeof useActing>;
  readonly agents: readonly Agent[];
  readonly wanted: Filter;
  readonly archived: boolean;
}

/** What can be done with the selected agents, and with which of them it failed. */
function Selected({ acting: { selected, bulk, act, end, selecting }, agents, wanted, archived }: SelectedProps) {
  const chosen = selected && agents.filter(({ id }) => selected.has(id));
  const onEnd = () => {
    end();
    selecting.current?.focus();
  };
  return (
    <>
      {chosen && (
        <SelectionBar
          chosen={chosen}
          hidden={chosen.filter((agent) => !matches(agent, wanted)).length}
          archived={archived}
          busy={bulk.busy}
          onAct={(what, agents) => void act(what, agents, chosen)}
          onEnd={onEnd}
        />
      )}
      {bulk.failures && <FailedAgents failures={bulk.failures} />}
    </>
  );
}

interface GroupsProps extends Pick<Props, "current" | "onNotify" | "onMore"> {
  readonly groups: readonly Group[];
  readonly item: (agent: Agent) => ReactNode;
  readonly isSelecting: boolean;
}

function Groups({ groups, current, item, isSelecting, onNotify, onMore }: GroupsProps) {
  const list = useRef<HTMLDivElement>(null);
  const onScroll = useInSight(list, current, groups.find(({ agents }) => agents.some(({ id }) => id === current))?.name);
  return (
    <div
      ref={list}
      className="agent-list"
      data-testid="agents"
      data-selecting={isSelecting || undefined}
      onScroll={onScroll}
    >
      {groups.map(({ name, agents }) => (
        <GroupOf key={name} name={name} onNotify={name === "Needs you" ? onNotify : undefined}>
          {agents.map(item)}
        </GroupOf>
      ))}
      {onMore && (
        <button type="button" className="button wide" onClick={onMore}>
          Load older agents
        </button>
      )}
    </div>
  );
}

/** The selected agents, and what is done with all of them at once. */
function useActing(order: readonly string[]) {
  const selection = useSelection(order);
  const bulk = useBulk();
  const selecting = useRef<HTMLButtonElement>(null);
  const act = async (what: Act, agents: readonly Agent[], chosen: readonly Agent[]) => {
    const failed = (await bulk.run(what, agents)).map(({ agent }) => agent.id);
    // The user may have selected others meanwhile. They stay selected, as do those with which it failed.
    selection.remove(chosen.map(({ id }) => id).filter((id) => !failed.includes(id)));
    // The button that was pressed is disabled, or gone.
    if (document.activeElement === document.body) selecting.current?.focus();
  };
  const begin = () => {
    bulk.forget();
    selection.begin();
  };
  const end = () => {
    bulk.forget();
    selection.end();
  };
  return { selected: selection.ids, toggle: selection.toggle, begin, end, bulk, act, selecting };
}

interface CountsProps extends Pick<Props, "agents" | "active"> {
  readonly archived: boolean;
  /** Whether there are more agents than these. */
  readonly isMore: boolean;
}

/** How many agents there are. The line has no room for it beside those that wait or run, so it is in the title then. */
function Counts({ agents, active, archived, isMore }: CountsProps) {
  const waiting = agents.filter(needsYou).length;
  const running = active - waiting;
  const total = `${agents.length}${isMore ? " or more" : ""} ${archived ? "archived" : "in the list"}`;
  const busy = [
    waiting > 0 && `${waiting} ${waiting === 1 ? "needs" : "need"} you`,
    running > 0 && `${running} running`,
  ].filter((part) => part !== false && !archived);
  return (
    <span className="muted" title={[...busy, total].join(" · ")} data-testid="agent-counts">
      {busy.join(" · ") || total}
    </span>
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

function AgentSkeleton() {
  return (
    <div className="skeleton" aria-hidden="true">
      <span />
      <span />
      <span />
    </div>
  );
}
