import type { Agent } from "@tokenrail/client";
import { useTokenrail } from "@tokenrail/client/react";
import { type FormEvent, type Ref, useEffect, useLayoutEffect, useRef, useState } from "react";

import { useAgentType } from "../agent/agent-type.ts";
import { aboutNode, isNodeLost } from "../agent/node.ts";
import { isActive, whatStops } from "../agent/StatusBadge.tsx";
import { useFailure } from "../connection/failure.ts";
import { usePhase } from "../connection/link.tsx";
import { inShort } from "../content/given.ts";
import type { ImageData } from "../content/images.ts";
import { AttachButton, Thumbnails, useAdding } from "../prompt/Attach.tsx";
import { type Attached, attached, useAttached } from "../prompt/attached.ts";
import { joined, useText } from "../prompt/draft.ts";
import { Failure } from "../ui/Failure.tsx";
import { counted } from "../ui/format.ts";
import { Icon } from "../ui/Icon.tsx";
import { submitOnEnter } from "../ui/keys.ts";
import { type Unsent, useOutbox, useUnsent } from "./outbox.ts";
import { Queue } from "./Queue.tsx";

/** A message that arrives earlier is not shown as being sent, because the line would only flash. */
const lateMs = 300;

interface Props {
  readonly agent: Agent;
  readonly send: (content: string, images?: readonly ImageData[]) => Promise<void>;
}

/** The form for the next message. While the agent is busy, the message is queued. */
export function Composer({ agent, send }: Props) {
  const unsent = useUnsent(agent.id);
  const [images, changeImages] = useAttached(agent.id);
  const draft = useDraft(agent.id, send, [images, changeImages], unsent !== undefined);
  const { text, change, busy, failure, setFailure } = draft;
  const type = useAgentType(agent.type);
  const add = (more: readonly Attached[]) => changeImages((now) => [...now, ...more]);
  const adding = useAdding({ type, images, add, onFailure: setFailure });
  const form = useRef<HTMLFormElement>(null);
  const { field, write } = useCaret();
  const submit = (event: FormEvent) => {
    // The pressed button may become the one that stops the agent.
    if (form.current?.contains(document.activeElement) && document.activeElement !== field.current) write();
    void draft.submit(event);
  };
  const isBusy = isActive(agent.status);
  const refusal = whyNot(agent);
  if (refusal) return <Closed why={refusal} />;
  const edit = (content: string, of: readonly ImageData[] = []) => {
    change((now) => joined(content, now));
    add(of.map((image) => attached(image)));
    write();
  };
  return (
    <form
      ref={form}
      className="composer"
      onSubmit={submit}
      aria-label="Follow-up"
      data-testid="composer"
      // It gets the focus when the focused line of the queue goes away.
      tabIndex={-1}
      {...adding.box}
    >
      {agent.queued > 0 && (
        <Queue agent={agent} onEdit={edit} onWithdrawn={() => form.current?.focus()} onFailure={setFailure} />
      )}
      {unsent && <Kept agentId={agent.id} message={unsent} onEdit={edit} />}
      {draft.sending !== undefined && <Sending content={draft.sending} />}
      {failure && <Failure error={failure} />}
      <Thumbnails
        images={images}
        onRemove={(key) => changeImages((now) => now.filter((image) => image.key !== key))}
      />
      <div className="composer-box">
        {type?.can.images && <AttachButton onFiles={(files) => void adding.take(files)} />}
        <Field ref={field} text={text} isBusy={isBusy} onText={(text) => change(() => text)} />
        {isBusy && !text.trim() ? (
          <Stop agent={agent} onFailure={setFailure} />
        ) : (
          <SendButton isBusy={isBusy} isDisabled={busy || unsent !== undefined || !text.trim()} />
        )}
      </div>
    </form>
  );
}

function Closed({ why }: { readonly why: string }) {
  return (
    <p className="composer-closed" data-testid="composer-closed">
      {why}
    </p>
  );
}

interface FieldProps {
  readonly ref: Ref<HTMLTextAreaElement>;
  readonly text: string;
  /** Whether the agent works. */
  readonly isBusy: boolean;
  readonly onText: (text: string) => void;
}

function Field({ ref, text, isBusy, onText }: FieldProps) {
  return (
    <textarea
      ref={ref}
      id="composer-text"
      rows={1}
      value={text}
      aria-label="Message to the agent"
      placeholder={isBusy ? "Write the next message; it is sent when this turn ends" : "Continue the conversation"}
      onChange={({ target }) => onText(target.value)}
      onKeyDown={submitOnEnter}
    />
  );
}

function SendButton({ isBusy, isDisabled }: { readonly isBusy: boolean; readonly isDisabled: boolean }) {
  const name = isBusy ? "Add to the queue" : "Send";
  return (
    <button type="submit" className="button primary" disabled={isDisabled} aria-label={name} data-testid="send">
      <Icon name="send" />
    </button>
  );
}

/** The text that the user writes, and how it is sent. Nothing is sent while an earlier message is kept. */
function useDraft(
  agentId: string,
  send: Props["send"],
  [images, changeImages]: ReturnType<typeof useAttached>,
  isBlocked: boolean,
) {
  const [text, change] = useText(agentId);
  const [failure, setFailure] = useFailure();
  const [sending, setSending] = useState<string>();
  const busy = sending !== undefined;
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (!text.trim() || busy || isBlocked) return;
    setSending(text);
    setFailure(undefined);
    // What the user writes meanwhile is another message.
    change(() => "");
    changeImages(() => []);
    try {
      await (images.length > 0 ? send(text, images) : send(text));
    } catch (error) {
      change((now) => joined(text, now));
      changeImages((now) => [...images, ...now]);
      setFailure(error as Error);
    } finally {
      setSending(undefined);
    }
  };
  return { text, change, submit, busy, sending, failure, setFailure };
}

/**
 * The field, and a function that puts the caret at the end of it. Without a focused field, the next keys would be shortcuts,
 * or answers.
 */
function useCaret() {
  const field = useRef<HTMLTextAreaElement>(null);
  const [times, setTimes] = useState(0);
  useLayoutEffect(() => {
    if (times === 0) return;
    field.current?.focus();
    field.current?.setSelectionRange(field.current.value.length, field.current.value.length);
  }, [times]);
  return { field, write: () => setTimes((now) => now + 1) };
}

interface StopProps extends Pick<Props, "agent"> {
  readonly onFailure: (failure: Error | undefined) => void;
}

/** Stops the running turn. The server also cancels the queued ones. */
function Stop({ agent, onFailure }: StopProps) {
  const client = useTokenrail();
  const isAway = usePhase() === "away";
  const stop = () => {
    onFailure(undefined);
    client.cancel(agent.id).catch(onFailure);
  };
  return (
    <button
      type="button"
      className="button danger"
      aria-label="Stop"
      title={isAway ? "The server cannot be reached" : whatStops(agent)}
      disabled={isAway}
      data-testid="stop"
      // The button that sends was here: the second click of a double click is not meant for this one.
      onClick={({ detail }) => detail > 1 || stop()}
    >
      <Icon name="stop" />
    </button>
  );
}

/** A message that is on its way. It is shown at once if it is known that the server cannot be reached. */
function Sending({ content }: { readonly content: string }) {
  const isAway = usePhase() === "away";
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), lateMs);
    return () => clearTimeout(timer);
  }, []);
  if (!isAway && !isLate) return null;
  return (
    <div className="queue" data-testid="sending">
      <p role="status">Sending…</p>
      <div className="queue-line">
        <span title={content}>{content}</span>
      </div>
    </div>
  );
}

interface KeptProps {
  readonly agentId: string;
  readonly message: Unsent;
  readonly onEdit: (content: string, images?: readonly ImageData[]) => void;
}

/** A message that could not be delivered. It cannot be edited while it is being sent: both texts could arrive. */
function Kept({ agentId, message: { content, images, refusal, isSending = false }, onEdit }: KeptProps) {
  const outbox = useOutbox();
  const edit = () => {
    const taken = outbox.takeBack(agentId);
    if (taken) onEdit(taken.content, taken.images);
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
        {images && <em>{counted(images.length, "image")}</em>}
        <button type="button" className="link" aria-label={`Edit: ${inShort(content)}`} disabled={isSending} onClick={edit}>
          Edit
        </button>
      </div>
    </div>
  );
}

/** Why the agent accepts no messages. */
export function whyNot(agent: Agent): string | undefined {
  if (agent.deletedAt) return "This agent was deleted, so it accepts no messages. Launch a new agent to continue.";
  if (agent.replayOf) return "A replay accepts no messages. Launch a new agent to continue.";
  if (agent.readOnly) return "An imported agent accepts no messages. Launch a new agent to continue.";
  return isNodeLost(agent) ? aboutNode(agent) : undefined;
}
