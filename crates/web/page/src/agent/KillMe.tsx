import { useConnection, useTokenrail } from "@tokenrail/client/react";
import { useEffect, useState } from "react";

import { CopyButton } from "../ui/CopyButton.tsx";

interface Props {
  /** The demo does not run yet. */
  readonly isBefore?: boolean;
}

/** The command that kills the server, for a user who wants to see that nothing is lost. Absent on another machine. */
export function KillMe({ isBefore = false }: Props) {
  const client = useTokenrail();
  const isOpen = useConnection().state === "open";
  const [pid, setPid] = useState<number>();
  useEffect(() => {
    // A server that was started again has another process.
    if (!isOpen) return;
    const leaving = new AbortController();
    client.server({ signal: leaving.signal }).then(
      (server) => setPid(server.pid),
      () => undefined,
    );
    return () => leaving.abort();
  }, [client, isOpen]);
  if (pid === undefined) return null;
  const command = `kill -9 ${pid}`;
  return (
    <p className="kill-me" data-testid="kill-me">
      {isBefore ? "To see that nothing is lost, kill the server during the demo:" : "Check for yourself that nothing is lost: kill the server with"} <code>{command}</code>{" "}
      <CopyButton text={command} what="the command" />. Then start it again: the conversation
      continues.
    </p>
  );
}
