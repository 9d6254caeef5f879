import type { Agent } from "@tokenrail/client";
import { useTokenrail } from "@tokenrail/client/react";
import { type FormEvent, useState } from "react";

import { Failure } from "../agents/LaunchForm.tsx";
import { isActive, whatStops } from "../agents/StatusBadge.tsx";
import { useFailure } from "../app/failure.ts";
import { Icon } from "../ui/Icon.tsx";
import { submitOnEnter } from "../ui/keys.ts";
import { type Unsent, useOutbox, useUnsent } from "./outbox.ts";
import { Queue } from "./Queue.tsx";

interface Props {
  readonly agent: Agent;
  readonly send: (content: string) => Promise<void>;
}

/** The form for the next message. While the agent is busy, the message is queued. */
export function Composer({ agent, send }: Props) {
  const unsent = useUnsent(agent.id);
  const { text, setText, submit, busy, failure, setFailure } = useDraft(send, unsent !== undefined);
  const refusal = whyNot(agent);
  if (refusal)
    return (
      <p className="composer-closed" data-testid="composer-closed">
        {refusal}
      </p>
    );
  const edit = (content: string) => setText((now) => [content, now].filter(Boolean).join("\n"));
  return (
    <form className="composer" onSubmit={submit} aria-label="Follow-up" data-testid="composer">
      {agent.queued > 0 && <Queue agent={agent} onEdit={edit} onFailure={setFailure} />}
      {unsent && (
        <Kept
          agentId={agent.id}
          message={unsent}
          onEdit={edit}
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
        {isActive(agent.status) && <Stop agent={agent} onFailure={setFailure} />}
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

/** The text that the user writes, and how it is sent. Nothing is sent while an earlier message is kept. */
function useDraft(send: Props["send"], isBlocked: boolean) {
  const [text, setText] = useState("");
  const [failure, setFailure] = useFailure();
  const [busy, setBusy] = useState(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (!text.trim() || busy || isBlocked) return;
    setBusy(true);
    setFailure(undefined);
    try {
      await send(text);
      // What the user has written meanwhile stays.
      setText((now) => (now === text ? "" : now));
    } catch (error) {
      setFailure(error as Error);
    } finally {
      setBusy(false);
    }
  };
  return { text, setText, submit, busy, failure, setFailure };
}

interface StopProps extends Pick<Props, "agent"> {
  readonly onFailure: (failure: Error | undefined) => void;
}

/** Stops the running turn. The server also cancels the queued ones. */
function Stop({ agent, onFailure }: StopProps) {
  const client = useTokenrail();
  const stop = () => {
    onFailure(undefined);
    client.cancel(agent.id).catch(onFailure);
  };
  return (
    <button
      type="button"
      className="button danger"
      aria-label="Stop"
      title={whatStops(agent)}
      data-testid="stop"
      onClick={stop}
    >
      <Icon name="stop" />
    </button>
  );
}

interface KeptProps {
  readonly agentId: string;
  readonly message: Unsent;
  readonly onEdit: (content: string) => void;
}

/** A message that could not be delivered. It cannot be edited while it is being sent: both texts could arrive. */
function Kept({ agentId, message: { content, refusal, isSending = false }, onEdit }: KeptProps) {
  const outbox = useOutbox();
  const edit = () => {
    const taken = outbox.takeBack(agentId);
    if (taken !== undefined) onEdit(taken);
  };
  return (
    <div className="queue" data-testid="unsent">
      {refusal ? (
        <Failure error={refusal} />
      ) : (
        <p role="status">{isSending ? "Sending…" : "Not delivered yet. It will be sent when the server is back."}</p>
      )}
      <div className="queue-line">
        <span title={content}>{content}</span>
        <button type="button" className="link" disabled={isSending} onClick={edit}>
          Edit
        </button>
      </div>
    </div>
  );
}

function whyNot(agent: Agent): string | undefined {
  if (agent.deletedAt) return "This agent was deleted, so it accepts no messages. Launch a new agent to continue.";
  if (agent.replayOf) return "A replay accepts no messages. Launch a new agent to continue.";
  if (agent.readOnly) return "An imported agent accepts no messages. Launch a new agent to continue.";
  return undefined;
}
