import type { ConnectionSnapshot } from "@tokenrail/client";

const words = { connecting: "Connecting", open: "Live", waiting: "Reconnecting", closed: "Disconnected" } as const;

/** Shows whether the page is up to date, in one word. The banner has the details. */
export function ConnectionState({ state }: { readonly state: ConnectionSnapshot }) {
  // No connection has been made yet: it is made after the first paint.
  const shown = state.state === "closed" && !state.error ? "connecting" : state.state;
  return (
    <span className="connection" data-state={shown} title={words[shown]}>
      <span role="status" data-testid="connection" data-state={shown}>
        <span className="connection-dot" aria-hidden="true" />
        <span className="connection-word">{words[shown]}</span>
      </span>
    </span>
  );
}
