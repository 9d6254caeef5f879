import type { Agent } from "@tokenrail/client";
import { useTokenrail } from "@tokenrail/client/react";
import { type FormEvent, useState } from "react";

import { Failure } from "../agents/LaunchForm.tsx";
import { isActive } from "../agents/StatusBadge.tsx";
import { useFailure } from "../app/failure.ts";
import { counted } from "../ui/format.ts";
import { Icon } from "../ui/Icon.tsx";
import { submitOnEnter } from "../ui/keys.ts";
import { type Unsent, useOutbox, useUnsent } from "./outbox.ts";
import { useQueue } from "./queue.ts";

interface Props {
  readonly agent: Agent;
  readonly send: (content: string) => Promise<void>;
}

/** The form for the next message. While the agent is busy, the message is queued. */
export function Composer({ agent, send }: Props) {
  const [text, setText] = useState("");
  const [failure, setFailure] = useFailure();
  const [busy, setBusy] = useState(false);
  const unsent = useUnsent(agent.id);
  const refusal = whyNot(agent);
  const client = useTokenrail();
  const stop = () => {
    setFailure(undefined);
    client.cancel(agent.id).catch(setFailure);
  };
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (!text.trim() || busy || unsent) return;
    setBusy(true);
    setFailure(undefined);
    try {
      await send(text);
      setText("");
    } catch (error) {
      setFailure(error as Error);
    } finally {
      setBusy(false);
    }
  };
  if (refusal)
    return (
      <p className="composer-closed" data-testid="composer-closed">
        {refusal}
      </p>
    );
  return (
    <form className="composer" onSubmit={submit} aria-label="Follow-up" data-testid="composer">
      {agent.queued > 0 && <Queue agent={agent} />}
      {unsent && (
        <Kept
          agentId={agent.id}
          message={unsent}
          onEdit={(content) => setText([content, text].filter(Boolean).join("\n"))}
        />
      )}
      {failure && <Failure error={failure} />}
      <div className="composer-box">
        <textarea
          id="composer-text"
          rows={1}
          value={text}
          aria-label="Message to the agent"
          placeholder={
            isActive(agent.status) ? "Write the next message; it is sent when this turn ends" : "Continue the conversation"
          }
          onChange={(event) => setText(event.target.value)}
          onKeyDown={submitOnEnter}
        />
        {isActive(agent.status) && (
          <button
            type="button"
            className="button danger"
            aria-label="Stop"
            title={agent.queued > 0 ? "Stop this turn and the queued ones" : "Stop this turn"}
            data-testid="stop"
            onClick={stop}
          >
            <Icon name="stop" />
          </button>
        )}
        <button
          type="submit"
          className="button primary"
          disabled={busy || unsent !== undefined || !text.trim()}
          aria-label={isActive(agent.status) ? "Add to the queue" : "Send"}
          data-testid="send"
        >
          <Icon name="send" />
        </button>
      </div>
    </form>
  );
}

interface KeptProps {
  readonly agentId: string;
  readonly message: Unsent;
  readonly onEdit: (content: string) => void;
}

/** A message that could not be delivered. */
function Kept({ agentId, message: { content, refusal }, onEdit }: KeptProps) {
  const outbox = useOutbox();
  return (
    <div className="queue" data-testid="unsent">
      {refusal ? <Failure error={refusal} /> : <p role="status">Not delivered yet. It is sent when the server is back.</p>}
      <div className="queue-line">
        <span title={content}>{content}</span>
        <button type="button" className="link" onClick={() => onEdit(outbox.takeBack(agentId))}>
          Edit
        </button>
      </div>
    </div>
  );
}

/** The messages that wait for the end of the turn. */
function Queue({ agent }: Pick<Props, "agent">) {
  const queue = useQueue(agent);
  return (
    <div className="queue" data-testid="queue">
      <p>{counted(agent.queued, "message")} in the queue</p>
      <ol>
        {queue.map((turn) => (
          <li key={turn.number} title={turn.prompt}>
            {turn.prompt}
          </li>
        ))}
      </ol>
    </div>
  );
}

function whyNot(agent: Agent): string | undefined {
  if (agent.deletedAt) return "This agent was deleted.";
  if (agent.replayOf) return "Replays are read-only.";
  if (agent.readOnly) return "Imported agents are read-only.";
  return undefined;
}
