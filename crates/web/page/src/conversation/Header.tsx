import type { Agent, Item } from "@tokenrail/client";
import { useTokenrail } from "@tokenrail/client/react";
import { type ReactNode, useState } from "react";

import { Failure } from "../agents/LaunchForm.tsx";
import { isActive, StatusBadge } from "../agents/StatusBadge.tsx";
import { titleOf } from "../agents/title.ts";
import { useNow } from "../app/now.ts";
import { compact, cost, count, dateOf, duration, shortDateOf } from "../ui/format.ts";
import { Icon, type IconName } from "../ui/Icon.tsx";
import { DetailsSwitch } from "./details.tsx";
import { save } from "../ui/save.ts";
import { turnTime } from "./turn-time.ts";
import { tokensOf } from "./usage.ts";

interface Props {
  readonly agent: Agent;
  readonly items: readonly Item[];
  /** How many events are shown. */
  readonly head: number;
  readonly plain: boolean;
  readonly notices: boolean;
  readonly onPlain: (plain: boolean) => void;
  readonly onNotices: (notices: boolean) => void;
  readonly onSearch: () => void;
  readonly onReplay?: (() => void) | undefined;
  readonly onOpen: (id: string | null) => void;
}

export function Header(props: Props) {
  const { agent, onSearch, onReplay } = props;
  const client = useTokenrail();
  const [failure, setFailure] = useState<Error>();
  const attempt = (action: () => Promise<unknown>) => async () => {
    setFailure(undefined);
    await action().catch(setFailure);
  };
  const active = isActive(agent.status);
  const exported = async () => save(await client.exportAgent(agent.id), `tokenrail-${agent.id}.json`);
  return (
    <header className="head">
      <div className="head-line">
        <h2 className="head-title" title={agent.prompt} dir="auto">
          {titleOf(agent)}
        </h2>
        <StatusBadge agent={agent} />
        <div className="head-actions" role="group" aria-label="Actions">
          {active && (
            <button
              type="button"
              className="button danger"
              data-testid="cancel"
              onClick={attempt(() => client.cancel(agent.id))}
            >
              <Icon name="stop" /> Cancel
            </button>
          )}
          <Action icon="search" name="Search" hint="Search (/)" onClick={onSearch} />
          {!active && onReplay && (
            <Action icon="replay" name="Replay" hint="Replay the history" onClick={onReplay} />
          )}
          {!active && <Action icon="download" name="Export" hint="Export as a file" onClick={attempt(exported)} />}
          <Toggle icon="text" name="Plain text" on={props.plain} set={props.onPlain} />
          <Toggle icon="terminal" name="Notices" on={props.notices} set={props.onNotices} />
          <DetailsSwitch />
          <Remove agent={agent} onRemoved={() => props.onOpen(null)} attempt={attempt} />
        </div>
      </div>
      <Facts agent={agent} items={props.items} head={props.head} />
      {failure && <Failure error={failure} />}
    </header>
  );
}

interface ActionProps {
  readonly icon: IconName;
  readonly name: string;
  readonly hint?: string;
  readonly onClick: () => void;
}

function Action({ icon, name, hint = name, onClick }: ActionProps) {
  return (
    <button
      type="button"
      className="icon-button"
      aria-label={name}
      title={hint}
      data-testid={`action-${icon}`}
      onClick={onClick}
    >
      <Icon name={icon} />
    </button>
  );
}

function Toggle({ icon, name, on, set }: { icon: IconName; name: string; on: boolean; set: (on: boolean) => void }) {
  return (
    <button
      type="button"
      className="icon-button"
      aria-label={name}
      title={name}
      aria-pressed={on}
      data-testid={`toggle-${icon}`}
      onClick={() => set(!on)}
    >
      <Icon name={icon} />
    </button>
  );
}

/** A deletion needs a second click to confirm it. */
function Remove({
  agent,
  onRemoved,
  attempt,
}: {
  agent: Agent;
  onRemoved: () => void;
  attempt: (action: () => Promise<unknown>) => () => void;
}) {
  const client = useTokenrail();
  const [asked, setAsked] = useState(false);
  const remove = attempt(async () => {
    await client.remove(agent.id);
    onRemoved();
  });
  if (agent.deletedAt) return null;
  if (!asked) return <Action icon="trash" name="Delete" onClick={() => setAsked(true)} />;
  return (
    <button type="button" className="button danger" autoFocus onBlur={() => setAsked(false)} onClick={remove}>
      Confirm delete
    </button>
  );
}

function Facts({ agent, items, head }: Pick<Props, "agent" | "items" | "head">) {
  const active = isActive(agent.status);
  const now = useNow(1_000, active);
  const tokens = tokensOf(agent.usage);
  const took = turnTime(items, active ? now : undefined);
  return (
    <dl className="facts" data-testid="facts">
      <Fact name="Type">{agent.type}</Fact>
      {agent.model && <Fact name="Model">{agent.model}</Fact>}
      <Fact name="Created" title={dateOf(agent.createdAt)}>
        <time dateTime={agent.createdAt}>{shortDateOf(agent.createdAt)}</time>
      </Fact>
      {took !== undefined && (
        <Fact
          name="Turn time"
          title={active ? "Duration so far of the running turn" : "Duration of the last turn"}
        >
          {duration(took)}
        </Fact>
      )}
      <Fact name="Turns">
        {count(agent.turn)}
        {agent.queued > 0 ? `, ${count(agent.queued)} queued` : ""}
      </Fact>
      <Fact name="Events">{count(head)}</Fact>
      {tokens && (
        <Fact name="Tokens">
          {compact(tokens.input)} in, {compact(tokens.output)} out
        </Fact>
      )}
      {agent.costUsd !== undefined && agent.costUsd > 0 && <Fact name="Cost">{cost(agent.costUsd)}</Fact>}
      <Fact name="Working directory" title={agent.cwd} long>
        <bdi>{agent.cwd}</bdi>
      </Fact>
    </dl>
  );
}

function Fact({ name, title, long, children }: { name: string; title?: string; long?: boolean; children: ReactNode }) {
  return (
    <div className={long ? "fact long" : "fact"} title={title}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
