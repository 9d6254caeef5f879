import { useCallback, useSyncExternalStore } from "react";
import type { ConversationSnapshot } from "../conversation.js";
import type { TokenrailError } from "../errors.js";
import type { Agent } from "../generated/wire.js";
import type { ConnectionSnapshot } from "../socket.js";
import { type Message, type Transcript, emptyTranscript, messagesOf } from "../transcript/index.js";
import { conversations } from "./preload.js";
import { useTokenrail } from "./provider.js";
import { useConnection } from "./useConnection.js";

const NOTHING: ConversationSnapshot = { transcript: emptyTranscript, loading: false, error: undefined, agent: undefined };
const nothing = () => NOTHING;
const noRefetch = () => {};

export interface UseAgentMessages {
  /** The messages, in order. An unchanged message remains the same object, so wrap its component in `memo`. */
  messages: readonly Message[];
  /** The same messages, with notices and usage: see `transcript.items`. */
  transcript: Transcript;
  /** True while the history is being loaded. `messages` then contains only the newest messages, or none. */
  loading: boolean;
  /** Why there are no messages, or no further messages. `refetch` tries again. */
  error: TokenrailError | undefined;
  /** Reads everything again from the beginning. */
  refetch(): void;
  connection: ConnectionSnapshot;
  agent: Agent | undefined;
}

/** The conversation of an agent: its history, and then its live events, even if connections are lost. */
export function useAgentMessages(agentId: string | null | undefined): UseAgentMessages {
  const client = useTokenrail();
  const connection = useConnection();
  const shared = agentId ? conversations.get(client, agentId) : undefined;
  const subscribe = useCallback(
    (listener: () => void) => {
      if (!shared) return () => {};
      const release = shared.use();
      const unsubscribe = shared.value.subscribe(listener);
      return () => {
        unsubscribe();
        release();
      };
    },
    [shared],
  );
  const read = shared?.value.snapshot ?? nothing;
  const { transcript, loading, error, agent } = useSyncExternalStore(subscribe, read, read);
  const refetch = shared?.value.refetch ?? noRefetch;
  return { messages: messagesOf(transcript), transcript, loading, error, refetch, connection, agent };
}
