import type { Agent, Client } from "@tokenrail/client";
import { useTokenrail } from "@tokenrail/client/react";
import { useState } from "react";

import { type Failed, withEach } from "../agent/edits.ts";

/** Something that is done with several agents. */
export interface Act {
  readonly verb: string;
  readonly run: (client: Client, agent: Agent) => Promise<unknown>;
}

/** With which agents an action failed. */
export interface Failures {
  readonly verb: string;
  readonly failed: readonly Failed[];
  readonly of: number;
}

export interface Bulk {
  readonly busy: boolean;
  readonly failures: Failures | undefined;
  readonly run: (act: Act, agents: readonly Agent[]) => Promise<readonly Failed[]>;
  readonly forget: () => void;
}

/** The action that runs, and what the last one could not do. It goes on if the user ends the selection meanwhile. */
export function useBulk(): Bulk {
  const client = useTokenrail();
  const [busy, setBusy] = useState(false);
  const [failures, setFailures] = useState<Failures>();
  const run = async ({ verb, run }: Act, agents: readonly Agent[]) => {
    setBusy(true);
    setFailures(undefined);
    const failed = await withEach(agents, (agent) => run(client, agent));
    setBusy(false);
    if (failed.length > 0) setFailures({ verb, failed, of: agents.length });
    return failed;
  };
  return { busy, failures, run, forget: () => setFailures(undefined) };
}
