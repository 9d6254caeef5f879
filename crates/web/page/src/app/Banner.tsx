import { useAgentMessages, useConnection, useTokenrail } from "@tokenrail/client/react";
import { type ReactNode, type RefObject, useEffect, useMemo, useRef, useState } from "react";

import type { Phase } from "../connection/link.tsx";
import { counted, remaining, sentence } from "../ui/format.ts";
import { Icon } from "../ui/Icon.tsx";
import { useNow } from "../ui/now.ts";

/** A shorter interruption shows no banner, because the page would jump twice for nothing. */
const lateMs = 1_000;
/** How long the banner says what was caught up. */
const goodNewsMs = 4_000;

interface Props {
  readonly phase: Phase;
  /** The agent on screen. The banner needs a new `key` if it changes. */
  readonly agentId: string | null;
  readonly onCaughtUp: () => void;
}

/** Says that the connection is lost and when the page retries, and later how many events it has caught up. */
export function Banner({ phase, agentId, onCaughtUp }: Props) {
  const { transcript, loading, connection } = useAgentMessages(agentId);
  const { last } = transcript;
  // The newest event when the connection was lost, if it is known.
  const before = useRef<number>(undefined);
  useEffect(() => {
    before.current = loading ? undefined : last;
  }, [loading, last]);
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    if (phase === "catching-up" || (phase === "away") === isShown) return;
    const timer = setTimeout(() => setShown(phase === "away"), phase === "away" ? lateMs : goodNewsMs);
    return () => clearTimeout(timer);
  }, [phase, isShown]);
  // Each pause is another snapshot.
  const retryAt = useMemo(() => Date.now() + (connection.retryInMs ?? 0), [connection]);
  if (phase === "away") return isShown && <Disconnected retryAt={retryAt} />;
  if (phase === "live" && !isShown) return null;
  return <Back {...{ agentId, last, before, isShown, onCaughtUp }} />;
}

interface BackProps extends Omit<Props, "phase"> {
  readonly last: number;
  readonly before: RefObject<number | undefined>;
  readonly isShown: boolean;
}

/** Waits until the missed events are on screen, and then says how many they were. */
function Back({ agentId, last, before, isShown, onCaughtUp }: BackProps) {
  const [from] = useState(() => before.current);
  const head = useHead(agentId);
  const isDone = head !== undefined && (head === "unknown" || last >= head);
  useEffect(() => {
    if (isDone) onCaughtUp();
  }, [isDone, onCaughtUp]);
  if (!isShown) return null;
  const missed = typeof head === "number" && from !== undefined ? head - from : undefined;
  return (
    <Line state={isDone ? "live" : "catching-up"}>
      <Icon name="check" />
      <span role="status">{isDone ? goodNews(missed) : "Connected. Catching up…"}</span>
    </Line>
  );
}

function Disconnected({ retryAt }: { readonly retryAt: number }) {
  const { connection } = useTokenrail();
  const now = useConnection();
  const isFinal = now.state === "closed";
  return (
    <Line state="away">
      <Icon name="alert" />
      <span>
        <span role="status">{isFinal ? "Disconnected." : "Connection lost."}</span>{" "}
        {isFinal ? sentence(now.error?.message ?? "") : <Retry at={retryAt} />}
      </span>
      <button type="button" className="button" onClick={isFinal ? () => location.reload() : connection.retryNow}>
        {isFinal ? "Reload the page" : "Try again"}
      </button>
    </Line>
  );
}

/** A screen reader does not read the seconds. */
function Retry({ at }: { readonly at: number }) {
  const isWaiting = useConnection().state === "waiting";
  const left = at - useNow(250);
  return <span aria-hidden="true">{isWaiting && left > 0 ? `Retrying in ${remaining(left)}` : "Retrying…"}</span>;
}

function Line({ state, children }: { readonly state: Phase; readonly children: ReactNode }) {
  return (
    <div className="banner" data-testid="banner" data-state={state}>
      {children}
    </div>
  );
}

function goodNews(missed: number | undefined): string {
  if (missed === undefined) return "Connected again.";
  return missed > 0 ? `Caught up: ${counted(missed, "event")}.` : "Connected again. Nothing was missed.";
}

/** The number of the agent's newest event when the connection came back. Undefined until the server has answered. */
function useHead(agentId: string | null): number | "unknown" | undefined {
  const client = useTokenrail();
  const [head, setHead] = useState<number | "unknown">();
  useEffect(() => {
    if (!agentId) return setHead("unknown");
    const leaving = new AbortController();
    client.agent(agentId, { signal: leaving.signal }).then(
      (agent) => setHead(agent.head),
      () => leaving.signal.aborted || setHead("unknown"),
    );
    return () => leaving.abort();
  }, [client, agentId]);
  return head;
}
