import type { Connection, ConnectionSnapshot } from "@tokenrail/client";

const words = { connecting: "Connecting", open: "Live", waiting: "Reconnecting", closed: "Disconnected" } as const;

interface Props {
  readonly connection: Connection;
  readonly state: ConnectionSnapshot;
}

/** Shows whether the page is up to date. No other part of the page shows this. */
export function ConnectionState({ connection, state }: Props) {
  // No connection has been made yet: it is made after the first paint.
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
