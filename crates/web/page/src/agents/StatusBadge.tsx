import type { AgentStatus } from "@tokenrail/client";

const words: Record<AgentStatus, string> = {
  initializing: "initializing",
  running: "running",
  completed: "completed",
  failed: "failed",
  cancelled: "cancelled",
  interrupted: "interrupted",
};

export function isActive(status: AgentStatus): boolean {
  return status === "initializing" || status === "running";
}

export function StatusBadge({ status }: { readonly status: AgentStatus }) {
  return (
    <span className="status" data-status={status}>
      <span className="status-dot" aria-hidden="true" />
      {words[status] ?? status}
    </span>
  );
}
