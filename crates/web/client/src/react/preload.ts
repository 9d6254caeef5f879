// This module does not import React, so that a page can start reading before it has loaded React.
import type { Client } from "../api.js";
import { Conversation, type ConversationSnapshot } from "../conversation.js";
import { emptyTranscript } from "../transcript/index.js";
import { SharedStores } from "./shared.js";

export const conversations = new SharedStores((client, id) => new Conversation(client, id));

/**
 * Starts to read a conversation before a component shows it, for example while the page loads or when the pointer is
 * pressed. Nothing is read twice. If no component uses the data within two seconds, it is dropped. The rest of a long
 * history is read when a component shows it.
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
  /** Resolves when the agent is known and its messages are being read. An error resolves both promises. */
  readonly agent: Promise<void>;
  /** Resolves when there is something to show. */
  readonly messages: Promise<void>;
}
