import type { Agent, Item } from "@tokenrail/client";
import type { ReactNode } from "react";

import { aboutNode } from "../agent/node.ts";
import { hasOwnFolder, ownFolder } from "../agent/own-folder.ts";
import { isActive } from "../agent/StatusBadge.tsx";
import { tokensOf } from "../agent/usage.ts";
import { usePhase } from "../connection/link.tsx";
import { compact, cost, count, dateOf, duration, shortDateOf } from "../ui/format.ts";
import { Icon } from "../ui/Icon.tsx";
import { useNow } from "../ui/now.ts";
import { turnTime } from "./turn-time.ts";

interface Props {
  readonly agent: Agent;
  readonly items: readonly Item[];
  /** How many events are shown. */
  readonly head: number;
  /** Whether there is room for the whole path of the folder. */
  readonly isWhole?: boolean;
}

export function Facts({ agent, items, head, isWhole = false }: Props) {
  const active = isActive(agent.status);
  // While the connection is lost, it is not known whether the turn is still running.
  const isLost = usePhase() === "away";
  const now = useNow(1_000, active && !isLost);
  const tokens = tokensOf(agent.usage);
  const took = turnTime(items, active ? now : undefined);
  return (
    <dl className="facts" data-testid="facts">
      <Fact name="Type">{agent.type}</Fact>
      {agent.model && <Fact name="Model">{agent.model}</Fact>}
      <Fact name="Folder" title={agent.cwd} long>
        <bdi>{isWhole ? agent.cwd : folderOf(agent)}</bdi>
      </Fact>
      {agent.node && (
        <Fact name="Node" title={aboutNode(agent) ?? "The server that has the agent's folder and runs its turns"} long>
          {agent.node}
          {agent.nodeState && <span className="tag">{agent.nodeState}</span>}
        </Fact>
      )}
      <Fact name="Created" title={dateOf(agent.createdAt)}>
        <time dateTime={agent.createdAt}>{shortDateOf(agent.createdAt)}</time>
      </Fact>
      {took !== undefined && (
        <Fact
          name="Turn time"
          title={active ? "How long the running turn has taken so far" : "Duration of the last turn"}
        >
          {duration(took)}
        </Fact>
      )}
      <Fact name="Turns">
        {count(agent.turn)}
        {agent.queued > 0 ? ` started, ${count(agent.queued)} queued` : ""}
      </Fact>
      {head > 0 && (
        <Fact name="Saved" title="Everything that is shown is saved on the server. A crash or a restart loses none of it">
          <span className="saved">
            <Icon name="check" /> up to event {count(head)}
          </span>
        </Fact>
      )}
      {tokens && (
        <Fact name="Tokens">
          {compact(tokens.input)} in, {compact(tokens.output)} out
        </Fact>
      )}
      {agent.costUsd !== undefined && agent.costUsd > 0 && <Fact name="Cost">{cost(agent.costUsd)}</Fact>}
    </dl>
  );
}

/** The last part of the path. That of a folder of its own is only an id. */
function folderOf(agent: Agent): string {
  if (hasOwnFolder(agent)) return ownFolder;
  return agent.cwd.split(/[\\/]/).findLast(Boolean) ?? agent.cwd;
}

interface FactProps {
  readonly name: string;
  readonly title?: string;
  readonly long?: boolean;
  readonly children: ReactNode;
}

function Fact({ name, title, long, children }: FactProps) {
  return (
    <div className={`fact${long ? " long" : ""}`} title={title}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
