import type { Agent, AgentStatus } from "@tokenrail/client";

const words: Record<AgentStatus, string> = {
  initializing: "starting",
  running: "running",
  completed: "completed",
  failed: "failed",
  cancelled: "cancelled",
  interrupted: "interrupted",
};

type State = Pick<Agent, "status" | "openQuestions">;

export function isActive(status: AgentStatus): boolean {
  return status === "initializing" || status === "running";
}

/** Whether the agent waits for the answer to a permission request. */
export function needsYou({ status, openQuestions }: State): boolean {
  return isActive(status) && openQuestions > 0;
}

/** What the button "Stop" does, for its tooltip. */
export function whatStops({ queued }: Pick<Agent, "queued">): string {
  const end = "The turn ends as “cancelled”.";
  return queued > 0 ? `Stop this turn, and withdraw the queued messages. ${end}` : `Stop this turn. ${end}`;
}

/** What has happened to an agent with this status, after its name. */
export function howEnded(status: AgentStatus): string {
  const was = status === "cancelled" || status === "interrupted";
  return `${was ? "was" : "has"} ${words[status] ?? status}`;
}

/** The words on the badge of an agent. */
export function badgeOf(agent: State): string {
  return needsYou(agent) ? "Needs you" : (words[agent.status] ?? agent.status);
}

export function StatusBadge({ agent }: { readonly agent: State }) {
  const { status } = agent;
  return (
    <span className="status" data-status={needsYou(agent) ? "needs-you" : status}>
      <span className="status-dot" aria-hidden="true" />
      <span className="status-text">{badgeOf(agent)}</span>
    </span>
  );
}

/** What kind of copy it is. Undefined for an original. */
export function originOf({ readOnly, replayOf }: Pick<Agent, "readOnly" | "replayOf">): "replay" | "imported" | undefined {
  if (replayOf) return "replay";
  return readOnly ? "imported" : undefined;
}

/** Distinguishes a copy from its original, which looks the same otherwise. */
export function OriginTag({ agent }: { readonly agent: Pick<Agent, "readOnly" | "replayOf"> }) {
  const origin = originOf(agent);
  return origin ? <span className="tag">{origin}</span> : null;
}
