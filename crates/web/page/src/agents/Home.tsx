import { useTokenrail } from "@tokenrail/client/react";
import { useState } from "react";

import { demo } from "../agent/demo.ts";
import { KillMe } from "../agent/KillMe.tsx";
import { useFailure } from "../connection/failure.ts";
import { LaunchForm } from "../launch/LaunchForm.tsx";
import { Failure } from "../ui/Failure.tsx";
import { Icon } from "../ui/Icon.tsx";
import { Trouble } from "../ui/Trouble.tsx";
import { ImportButton } from "./ImportButton.tsx";
import type { AgentTypes } from "./types.ts";

interface Props {
  readonly types: AgentTypes;
  /** Whether the list has no agents. */
  readonly empty: boolean;
  /** Folders in which agents work. */
  readonly folders?: readonly string[];
  readonly onLaunched: (id: string) => void;
}

/** The first page: a button for the demo, and the launch form. */
export function Home({ types: { types, error, retry }, empty, folders = [], onLaunched }: Props) {
  const hasDemo = types.some((type) => type.type === demo && type.available);
  return (
    <div className="home">
      <div className="home-inner">
        <h2 className="home-title">{empty ? "Launch an agent" : "New agent"}</h2>
        <p className="lead">
          All output is saved before it is shown. If you close the tab or restart the server, the conversation continues where
          it left off.
        </p>
        {error && <Trouble error={error} what="cannot load the agent types" onRetry={retry} />}
        {hasDemo && <Demo onLaunched={onLaunched} />}
        <section className="card" aria-label="Launch">
          <LaunchForm client={useTokenrail()} types={types} folders={folders} onLaunched={onLaunched} />
        </section>
        <ImportButton onImported={onLaunched} />
      </div>
    </div>
  );
}

function Demo({ onLaunched }: { readonly onLaunched: (id: string) => void }) {
  const client = useTokenrail();
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useFailure();
  const launch = async () => {
    setBusy(true);
    try {
      const agent = await client.launch({ type: demo, prompt: "Show me what Tokenrail does." });
      onLaunched(agent.id);
    } catch (error) {
      setFailure(error as Error);
      setBusy(false);
    }
  };
  return (
    <section className="card demo" aria-label="Demo">
      <Icon name="spark" />
      <div>
        <h3>Watch a demo</h3>
        <p>A recorded session of a coding agent: reasoning, tools, an answer. It needs no account and costs nothing.</p>
        <KillMe isBefore />
        {failure && <Failure error={failure} />}
      </div>
      <button type="button" id="demo" className="button" data-testid="launch-demo" disabled={busy} onClick={launch}>
        <Icon name="play" /> Launch the demo
      </button>
    </section>
  );
}
