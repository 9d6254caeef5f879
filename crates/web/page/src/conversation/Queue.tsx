import type { Agent, Turn } from "@tokenrail/client";
import { useTokenrail } from "@tokenrail/client/react";
import { useState } from "react";

import { isUnreachable } from "../connection/failure.ts";
import { usePhase } from "../connection/link.tsx";
import { inShort } from "../content/given.ts";
import type { ImageData } from "../content/images.ts";
import { imagesOf } from "../prompt/attached.ts";
import { counted } from "../ui/format.ts";
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
        {queue.map((turn, at) => (
          <Waiting key={turn.number} turn={turn} isNext={at === 0} {...actions} />
        ))}
      </ol>
    </div>
  );
}

interface WaitingProps extends Actions {
  readonly turn: Turn;
  /** Whether its turn begins when the running one ends. */
  readonly isNext: boolean;
}

/** One message that waits. It can be taken back until its turn begins. */
function Waiting({ turn, isNext, onEdit, onWithdrawn, onFailure }: WaitingProps) {
  const client = useTokenrail();
  const [doing, setDoing] = useState<"stopping" | "asking">();
  // Each of the actions needs the server.
  const isAway = usePhase() === "away";
  const busy = isAway || doing !== undefined;
  const attempt = async (action: () => Promise<void>) => {
    setDoing(action === sendNow ? "stopping" : "asking");
    onFailure(undefined);
    try {
      await action();
    } catch (error) {
      onFailure(error as Error);
      setDoing(undefined);
    }
  };
  // The message stays where it is, so it is neither lost nor sent twice. If its turn has begun meanwhile, nothing is done.
  const sendNow = async () => {
    const turns = await client.turns(turn.agentId);
    const running = turns.find(({ number, status }) => number < turn.number && status === "running");
    // A tool may take its time to stop. When the turn of this message begins, the line goes away.
    if (running) await client.cancel(turn.agentId, { turn: running.number });
    else setDoing(undefined);
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
      {doing === "stopping" && <em role="status">Stopping the turn…</em>}
      {isNext && doing !== "stopping" && (
        <LineButton
          {...{ turn, busy }}
          name="Send now"
          title="Stop the running turn, and send this message"
          testId="send-now"
          onClick={() => void attempt(sendNow)}
        />
      )}
      <LineButton {...{ turn, busy }} name="Edit" testId="edit-queued" onClick={() => void attempt(edit)} />
      <LineButton {...{ turn, busy }} name="Withdraw" testId="withdraw" onClick={() => void attempt(withdraw)} />
    </li>
  );
}

interface LineButtonProps {
  readonly turn: Turn;
  readonly name: string;
  readonly title?: string;
  readonly testId: string;
  readonly busy: boolean;
  readonly onClick: () => void;
}

function LineButton({ turn, name, title, testId, busy, onClick }: LineButtonProps) {
  return (
    <button
      type="button"
      className="link"
      aria-label={`${name}: ${inShort(turn.prompt)}`}
      title={title}
      disabled={busy}
      data-testid={testId}
      onClick={onClick}
    >
      {name}
    </button>
  );
}
