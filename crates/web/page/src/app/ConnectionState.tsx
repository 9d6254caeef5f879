import type { Connection, ConnectionSnapshot } from "@tokenrail/client";

const words = { connecting: "Connecting", open: "Live", waiting: "Reconnecting", closed: "Disconnected" } as const;

interface Props {
  readonly connection: Connection;
  readonly state: ConnectionSnapshot;
}

/** Whether what is seen is what is. The one place that speaks of it. */
export function ConnectionState({ connection, state }: Props) {
  return (
    <span className="connection" data-state={state.state}>
      <span role="status" data-testid="connection" data-state={state.state}>
        <span className="connection-dot" aria-hidden="true" />
        {words[state.state]}
      </span>
      {state.state === "waiting" && (
        <button type="button" className="link" onClick={connection.retryNow}>
          Try now
        </button>
      )}
    </span>
  );
}
