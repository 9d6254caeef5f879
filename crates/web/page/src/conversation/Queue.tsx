import type { Agent, Turn } from "@tokenrail/client";
import { useTokenrail } from "@tokenrail/client/react";
import { useState } from "react";

import { isUnreachable } from "../app/failure.ts";
import { counted } from "../ui/format.ts";
import { imagesOf } from "./attached.ts";
import { inShort } from "./given.ts";
import type { ImageData } from "./images.ts";
import { useQueue } from "./queue.ts";

interface Actions {
  /** Receives the text and the images of a message that was withdrawn in order to change it. */
  readonly onEdit: (content: string, images: readonly ImageData[]) => void;
  /** Called when a message was withdrawn for good. */
  readonly onWithdrawn: () => void;
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
function Waiting({ turn, onEdit, onWithdrawn, onFailure }: WaitingProps) {
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
  const withdraw = async () => {
    await client.withdraw(turn.agentId, turn.number);
    onWithdrawn();
  };
  const edit = async () => {
    // A list shortens long prompts.
    const { prompt } = turn.truncated ? await client.turn(turn.agentId, turn.number) : turn;
    const images = await imagesOf(client, turn.agentId, turn.number, turn.images?.length ?? 0);
    try {
      await client.withdraw(turn.agentId, turn.number);
    } catch (error) {
      // It may be withdrawn nevertheless. Its text must not be lost then.
      if (isUnreachable(error)) onEdit(prompt, images);
      throw error;
    }
    onEdit(prompt, images);
  };
  return (
    <li className="queue-line">
      <span title={turn.prompt}>{turn.prompt}</span>
      {turn.images && <em>{counted(turn.images.length, "image")}</em>}
      <button
        type="button"
        className="link"
        aria-label={`Edit: ${inShort(turn.prompt)}`}
        disabled={busy}
        data-testid="edit-queued"
        onClick={() => void attempt(edit)}
      >
        Edit
      </button>
      <button
        type="button"
        className="link"
        aria-label={`Withdraw: ${inShort(turn.prompt)}`}
        disabled={busy}
        data-testid="withdraw"
        onClick={() => void attempt(withdraw)}
      >
        Withdraw
      </button>
    </li>
  );
}
