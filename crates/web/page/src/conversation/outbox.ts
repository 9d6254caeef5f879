import { type Client, freshKey } from "@tokenrail/client";
import { useTokenrail } from "@tokenrail/client/react";
import { useCallback, useSyncExternalStore } from "react";

import { isUnreachable } from "../app/failure.ts";

/** If the connection seems open but a message did not arrive, it is sent again after this time. */
const againMs = 5_000;

/** A message that may not have arrived. It keeps its key, so the server accepts it only once. */
export interface Unsent {
  readonly content: string;
  readonly key: string;
  /** Why the server refused it, after it was reachable again. */
  readonly refusal?: Error;
}

/**
 * Sends messages. A message that cannot be delivered is kept, at most one for each agent, and sent again when the
 * connection is back, whatever the page shows then.
 */
export class Outbox {
  readonly #client: Client;
  readonly #unsent = new Map<string, Unsent>();
  readonly #sending = new Set<Unsent>();
  readonly #listeners = new Set<() => void>();

  constructor(client: Client) {
    this.#client = client;
    client.connection.subscribe(() => this.#sendAll());
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  get(agentId: string): Unsent | undefined {
    return this.#unsent.get(agentId);
  }

  /** Resolves when the message is sent, or kept for later. Fails if the server refuses it. */
  async send(agentId: string, content: string): Promise<void> {
    const message = { content, key: freshKey() };
    try {
      await this.#deliver(agentId, message);
    } catch (error) {
      if (!isUnreachable(error)) throw error;
      this.#keep(agentId, message);
      this.#retryLater();
    }
  }

  /** Takes the kept message out, so that it is not sent any more. */
  takeBack(agentId: string): string {
    const { content = "" } = this.get(agentId) ?? {};
    this.#keep(agentId, undefined);
    return content;
  }

  #sendAll(): void {
    if (this.#client.connection.state !== "open") return;
    for (const [agentId, message] of this.#unsent) if (!message.refusal) void this.#again(agentId, message);
  }

  async #again(agentId: string, message: Unsent): Promise<void> {
    if (this.#sending.has(message)) return;
    let left: Unsent | undefined;
    try {
      await this.#deliver(agentId, message);
    } catch (error) {
      left = isUnreachable(error) ? message : { ...message, refusal: error as Error };
    }
    // The user may have taken it back, and may have written another one.
    if (this.get(agentId) === message) this.#keep(agentId, left);
    if (left === message) this.#retryLater();
  }

  async #deliver(agentId: string, message: Unsent): Promise<void> {
    this.#sending.add(message);
    try {
      await this.#client.send(agentId, { content: message.content }, { idempotencyKey: message.key });
    } finally {
      this.#sending.delete(message);
    }
  }

  #retryLater(): void {
    setTimeout(() => this.#sendAll(), againMs);
  }

  #keep(agentId: string, message: Unsent | undefined): void {
    if (message) this.#unsent.set(agentId, message);
    else this.#unsent.delete(agentId);
    for (const listener of [...this.#listeners]) listener();
  }
}

const outboxes = new WeakMap<Client, Outbox>();

function outboxOf(client: Client): Outbox {
  const known = outboxes.get(client);
  if (known) return known;
  const outbox = new Outbox(client);
  outboxes.set(client, outbox);
  return outbox;
}

export function useOutbox(): Outbox {
  return outboxOf(useTokenrail());
}

/** The message to this agent that is kept until the connection is back. */
export function useUnsent(agentId: string): Unsent | undefined {
  const outbox = useOutbox();
  return useSyncExternalStore(
    outbox.subscribe,
    useCallback(() => outbox.get(agentId), [outbox, agentId]),
  );
}
