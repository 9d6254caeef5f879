// Here is no React: a page may begin to read before it has loaded that.
import type { Client } from "../client.js";
import { Conversation, type ConversationSnapshot } from "../conversation.js";
import { emptyTranscript } from "../transcript/index.js";
import { SharedStores } from "./shared.js";

export const conversations = new SharedStores((client, id) => new Conversation(client, id));

/**
 * Begins to read a conversation before there is a component for it: when the page loads, or the pointer is on its way to
 * it. Nothing is read twice; what nobody asks for within two seconds is dropped, and the rest of a history is read when a
 * component shows it.
 */
export function preloadAgentMessages(client: Client, agentId: string): Preload {
  const conversation = conversations.get(client, agentId).value;
  conversation.preload();
  const is = (reached: (snapshot: ConversationSnapshot) => boolean) =>
    new Promise<void>((resolve) => {
      const look = () => {
        const snapshot = conversation.snapshot();
        if (snapshot.loading && !snapshot.error && !reached(snapshot)) return;
        unsubscribe();
        resolve();
      };
      const unsubscribe = conversation.subscribe(look);
      look();
    });
  return { agent: is(({ agent }) => agent !== undefined), messages: is(({ transcript }) => transcript !== emptyTranscript) };
}

export interface Preload {
  /** The agent is known, and its messages are on their way. An error resolves both. */
  readonly agent: Promise<void>;
  /** There is something to be shown. */
  readonly messages: Promise<void>;
}
