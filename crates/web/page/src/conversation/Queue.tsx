import type { Agent, Turn } from "@tokenrail/client";
import { useTokenrail } from "@tokenrail/client/react";
import { useState } from "react";

import { counted } from "../ui/format.ts";
import { useQueue } from "./queue.ts";

interface Actions {
  /** Receives the text of a message that was withdrawn in order to change it. */
  readonly onEdit: (content: string) => void;
  readonly onFailure: (failure: Error | undefined) => void;
}

interface Props extends Actions {
  readonly agent: Agent;
}

/** The messages that wait for the end of the turn. */
export function Queue({ agent, ...actions }: Props) {
  const queue = useQueue(agent);
  return (
    <div className="queue" data-testid="queue">
      <p>{counted(agent.queued, "message")} in the queue</p>
      <ol>
        {queue.map((turn) => (
          <Waiting key={turn.number} turn={turn} {...actions} />
        ))}
      </ol>
    </div>
  );
}

interface WaitingProps extends Actions {
  readonly turn: Turn;
}

/** One message that waits. It can be taken back until its turn begins. */
function Waiting({ turn, onEdit, onFailure }: WaitingProps) {
  const client = useTokenrail();
  const [busy, setBusy] = useState(false);
  const attempt = async (action: () => Promise<void>) => {
    setBusy(true);
    onFailure(undefined);
    try {
      await action();
    } catch (error) {
      onFailure(error as Error);
      setBusy(false);
    }
  };
  const withdraw = () => client.withdraw(turn.agentId, turn.number);
  const edit = async () => {
    // A list shortens long prompts.
    const { prompt } = turn.truncated ? await client.turn(turn.agentId, turn.number) : turn;
    await withdraw();
    onEdit(prompt);
  };
  return (
    <li className="queue-line">
      <span title={turn.prompt}>{turn.prompt}</span>
      <button type="button" className="link" disabled={busy} data-testid="edit-queued" onClick={() => void attempt(edit)}>
        Edit
      </button>
      <button type="button" className="link" disabled={busy} data-testid="withdraw" onClick={() => void attempt(withdraw)}>
        Withdraw
      </button>
    </li>
  );
}
