import type { Agent, OpenQuestion } from "@tokenrail/client";
import { preloadAgentMessages, useAgentMessages, useTokenrail } from "@tokenrail/client/react";
import { memo } from "react";

import { needsYou, OriginTag, StatusBadge } from "../agent/StatusBadge.tsx";
import { titleOf } from "../agent/title.ts";
import { tokensOf } from "../agent/usage.ts";
import { pathOf } from "../connection/address.ts";
import { compact, cost, wait } from "../ui/format.ts";
import { IconButton } from "../ui/IconButton.tsx";
import { askedIn } from "./open-questions.ts";

interface Props {
  readonly agent: Agent;
  readonly age: string;
  /** What the agent asks the user, if that is known. */
  readonly question: OpenQuestion | undefined;
  /** The current time, for an agent that needs the user. */
  readonly now: number | undefined;
  readonly current: boolean;
  /** Undefined while the user does not select. */
  readonly selected: boolean | undefined;
  readonly onOpen: (id: string) => void;
  readonly onSelect: (id: string, withRange: boolean) => void;
  readonly onActions: (agent: Agent) => void;
}

export const AgentItem = memo(function AgentItem(props: Props) {
  const { agent, age, question, now, current, selected, onOpen, onSelect, onActions } = props;
  const client = useTokenrail();
  const isSelecting = selected !== undefined;
  return (
    <li className="agent-row" data-selected={selected || undefined}>
      <a
        href={pathOf(agent.id)}
        className="agent"
        data-testid="agent"
        data-agent-id={agent.id}
        aria-current={current ? "page" : undefined}
        title={detailsOf(agent)}
        onPointerDown={() => preloadAgentMessages(client, agent.id)}
        onClick={(event) => {
          if (event.metaKey || event.ctrlKey) return;
          event.preventDefault();
          if (isSelecting || event.shiftKey) onSelect(agent.id, event.shiftKey);
          else onOpen(agent.id);
        }}
      >
        <span className="agent-line">
          <span className="agent-title">{titleOf(agent)}</span>
          <OriginTag agent={agent} />
        </span>
        <span className="agent-meta">
          <StatusBadge agent={agent} />
          {question && needsYou(agent) ? (
            <Asked question={question} now={now} />
          ) : (
            <>
              <span className="agent-type">{agent.type}</span>
              <span className="agent-counts">
                <span className="detail">{current ? <CurrentHead agent={agent} /> : <Head head={agent.head} />} · </span>
                {age}
              </span>
            </>
          )}
        </span>
      </a>
      <ItemTools {...{ agent, selected, onSelect, onActions }} />
    </li>
  );
});

type ItemToolsProps = Pick<Props, "agent" | "selected" | "onSelect" | "onActions">;

function ItemTools({ agent, selected, onSelect, onActions }: ItemToolsProps) {
  const isSelecting = selected !== undefined;
  return (
    <span className="agent-tools">
      <input
        type="checkbox"
        aria-label={`Select ${titleOf(agent)}`}
        checked={selected ?? false}
        // Until the user selects, each agent needs only one more stop of the Tab key.
        tabIndex={isSelecting ? 0 : -1}
        onChange={({ nativeEvent }) => onSelect(agent.id, nativeEvent instanceof MouseEvent && nativeEvent.shiftKey)}
      />
      {!isSelecting && (
        <IconButton
          icon="more"
          name={`Actions for ${titleOf(agent)}`}
          aria-haspopup="dialog"
          data-testid="agent-actions"
          onClick={() => onActions(agent)}
        />
      )}
    </span>
  );
}

/** What is asked, and how long the request still waits for an answer. */
function Asked({ question, now }: { readonly question: OpenQuestion; readonly now: number | undefined }) {
  const { expiresAt } = question;
  return (
    <>
      <span className="agent-asked" data-testid="asked">
        {askedIn(question)}
      </span>
      {expiresAt && now !== undefined && <span className="agent-counts">{wait(Date.parse(expiresAt) - now)} left</span>}
    </>
  );
}

/** What the row has no room for. */
function detailsOf(agent: Agent): string {
  const tokens = tokensOf(agent.usage);
  const lines = [
    titleOf(agent),
    `Folder: ${agent.cwd}`,
    agent.model && `Model: ${agent.model}`,
    tokens && `Tokens: ${compact(tokens.input)} in, ${compact(tokens.output)} out`,
    agent.costUsd && `Cost: ${cost(agent.costUsd)}`,
  ];
  return lines.filter(Boolean).join("\n");
}

/** The number of events of the agent on screen. It is as new as the conversation, and newer than the list. */
function CurrentHead({ agent }: { readonly agent: Agent }) {
  const { last } = useAgentMessages(agent.id).transcript;
  return <Head head={Math.max(agent.head, last)} />;
}

function Head({ head }: { readonly head: number }) {
  return `${compact(head)} ${head === 1 ? "event" : "events"}`;
}
