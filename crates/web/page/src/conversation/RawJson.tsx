import type { AgentMessage } from "@tokenrail/client";
import { useTokenrail } from "@tokenrail/client/react";
import { useEffect, useState } from "react";

import { Highlighted } from "../markdown/highlight.tsx";
import { CopyButton } from "../ui/CopyButton.tsx";
import { useAgentId } from "./agent-id.ts";

/** The event as JSON, with the raw lines that the agent printed. */
export function RawJson({ sequence }: { readonly sequence: number }) {
  const client = useTokenrail();
  const agentId = useAgentId();
  const [event, setEvent] = useState<AgentMessage>();
  const [failure, setFailure] = useState("");
  useEffect(() => {
    const leaving = new AbortController();
    const { signal } = leaving;
    client.events(agentId, { since: sequence - 1, limit: 1, raw: true, signal }).then(
      ({ messages: [found] }) => setEvent(found),
      (error: Error) => signal.aborted || setFailure(error.message),
    );
    return () => leaving.abort();
  }, [client, agentId, sequence]);
  const text = event ? JSON.stringify(event, null, 2) : failure || "…";
  return (
    <figure className="io raw" data-testid="raw-json">
      <figcaption>
        <span>Event {sequence}</span>
        <CopyButton text={text} what="JSON" />
      </figcaption>
      <pre tabIndex={0} aria-label="Raw JSON">
        <code>
          <Highlighted text={text} language="json" />
        </code>
      </pre>
    </figure>
  );
}
