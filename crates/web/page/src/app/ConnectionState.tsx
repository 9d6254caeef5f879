import type { Connection, ConnectionSnapshot } from "@tokenrail/client";

const words = { connecting: "Connecting", open: "Live", waiting: "Reconnecting", closed: "Disconnected" } as const;

interface Props {
  readonly connection: Connection;
  readonly state: ConnectionSnapshot;
}

/** Whether what is seen is what is. The one place that speaks of it. */
export function ConnectionState({ connection, state }: Props) {
  // None has been made yet: it will be, when the first picture has been painted.
  const shown = state.state === "closed" && !state.error ? "connecting" : state.state;
  return (
    <span className="connection" data-state={shown}>
      <span role="status" data-testid="connection" data-state={shown}>
        <span className="connection-dot" aria-hidden="true" />
        {words[shown]}
      </span>
      {state.state === "waiting" && (
        <button type="button" className="link" onClick={connection.retryNow}>
          Try now
        </button>
      )}
    </span>
  );
}
