import { type Client, freshKey } from "@tokenrail/client";
import { useTokenrail } from "@tokenrail/client/react";
import { useCallback, useSyncExternalStore } from "react";

import { base } from "../connection/address.ts";
import { isLoggedOut, isUnreachable } from "../connection/failure.ts";
import { fieldsOf } from "../content/given.ts";
import type { ImageData } from "../content/images.ts";
import { sendable } from "../prompt/attached.ts";
import { unsentKey } from "../ui/tab-texts.ts";

/** If the connection seems open but a message did not arrive, it is sent again after this time. */
const againMs = 5_000;

/**
 * So often a message with images is sent again. If a server or a proxy refuses a large message before it has read it, a
 * browser only says that the connection broke, and each attempt sends everything.
 */
const largeTries = 3;

/** The server remembers keys for 24 hours. An older message could take effect twice. */
const keyMs = 23 * 3_600_000;

/** A message that may not have arrived. It keeps its key, so the server accepts it only once. */
export interface Unsent {
  readonly content: string;
  /** They are not stored with the text, because they are too large. */
  readonly images?: readonly ImageData[];
  readonly key: string;
  /** When the user sent it, in milliseconds. */
  readonly at: number;
  /** How often it was sent again. */
  readonly tries?: number;
  /** Whether it is being sent again. */
  readonly isSending?: boolean;
  /** Why it is not sent again: the server refused it, or it is too old. */
  readonly refusal?: Error;
}

/**
 * Sends messages. A message that cannot be delivered is kept, at most one for each agent, and sent again when the
 * connection is back, whatever the page shows then. So is one that is refused because the session has ended, after the next
 * login. The tab keeps it too, for the time after a reload.
 */
export class Outbox {
  readonly #client: Client;
  readonly #unsent = unsentOfTab();
  readonly #listeners = new Set<() => void>();

  constructor(client: Client) {
    this.#client = client;
    client.connection.subscribe(() => this.sendAll());
    if (this.#unsent.size > 0) this.#retryLater();
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  get(agentId: string): Unsent | undefined {
    return this.#unsent.get(agentId);
  }

  /** Resolves when the message is sent, or kept for later. Fails if the server refuses it, or if another one is kept. */
  async send(agentId: string, content: string, images: readonly ImageData[] = []): Promise<void> {
    const message = { content, ...(images.length > 0 && { images }), key: freshKey(), at: Date.now() };
    try {
      await this.#deliver(agentId, message);
    } catch (error) {
      // Only one message is kept, so another one fails.
      if (!(isUnreachable(error) || isLoggedOut(error)) || this.get(agentId)) throw error;
      this.#keep(agentId, message);
      this.#retryLater();
    }
  }

  /** Takes the kept message out, so that it is not sent any more. Not possible while it is being sent. */
  takeBack(agentId: string): Pick<Unsent, "content" | "images"> | undefined {
    const message = this.get(agentId);
    if (!message || message.isSending) return undefined;
    this.#keep(agentId, undefined);
    return message;
  }

  /** Sends what is kept, if the server can be reached. Called after a login too. */
  sendAll(): void {
    if (this.#client.connection.state !== "open") return;
    for (const [agentId, message] of [...this.#unsent])
      if (!message.refusal && !message.isSending) void this.#again(agentId, message);
  }

  async #again(agentId: string, message: Unsent): Promise<void> {
    if (Date.now() - message.at > keyMs) return this.#keep(agentId, { ...message, refusal: tooOld() });
    this.#keep(agentId, { ...message, isSending: true });
    let left: Unsent | undefined;
    let isOut = false;
    try {
      await this.#deliver(agentId, message);
    } catch (error) {
      isOut = isLoggedOut(error);
      const tries = (message.tries ?? 0) + 1;
      left = isOut || isUnreachable(error) ? { ...message, tries } : { ...message, refusal: error as Error };
      if (!isOut && message.images && largeTries <= tries) left = { ...message, refusal: tooLarge() };
    }
    this.#keep(agentId, left);
    // Without a session, another attempt would fail too.
    if (left && !left.refusal && !isOut) this.#retryLater();
  }

  async #deliver(agentId: string, { content, images, key }: Unsent): Promise<void> {
    await this.#client.send(agentId, { content, ...(images && { images: sendable(images) }) }, { idempotencyKey: key });
  }

  #retryLater(): void {
    setTimeout(() => this.sendAll(), againMs);
  }

  #keep(agentId: string, message: Unsent | undefined): void {
    if (message) this.#unsent.set(agentId, message);
    else this.#unsent.delete(agentId);
    keepInTab(this.#unsent);
    for (const listener of [...this.#listeners]) listener();
  }
}

/** The tab stores only that the message has images. Without them, it would be another message. */
function imagesLost(): Error {
  return new Error("the images of this message were lost when the page was reloaded; choose Edit, add the images again, and send the message");
}

function tooLarge(): Error {
  return new Error("the message did not arrive, perhaps because its images are too large; choose Edit, remove some images, and send the message again");
}

function tooOld(): Error {
  return new Error("this message is more than 23 hours old, so it was not sent automatically; choose Edit, and then send it");
}

/** The tab's messages. A path below which another server is reached has its own. */
const keptKey = `${unsentKey}${base}`;

function unsentOfTab(): Map<string, Unsent> {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(keptKey) ?? "[]");
    return new Map(Array.isArray(kept) ? kept.filter(isKept).map(restored) : []);
  } catch {
    // The storage may be disabled, or contain something else.
    return new Map();
  }
}

interface Stored extends Pick<Unsent, "content" | "key" | "at"> {
  readonly hasImages?: boolean;
}

function restored([agentId, { content, key, at, hasImages }]: [string, Stored]): [string, Unsent] {
  return [agentId, { content, key, at, ...(hasImages && { refusal: imagesLost() }) }];
}

function isKept(entry: unknown): entry is [string, Stored] {
  const [agentId, message]: unknown[] = Array.isArray(entry) ? entry : [];
  const { content, key, at } = fieldsOf(message);
  return typeof agentId === "string" && typeof content === "string" && typeof key === "string" && typeof at === "number";
}

function keepInTab(unsent: ReadonlyMap<string, Unsent>): void {
  const entries = [...unsent].map(([agentId, { content, images, key, at }]) => {
    return [agentId, { content, key, at, ...(images && { hasImages: true }) }];
  });
  try {
    if (entries.length > 0) sessionStorage.setItem(keptKey, JSON.stringify(entries));
    else sessionStorage.removeItem(keptKey);
  } catch {
    // The storage is full or disabled. The messages are then kept until the page is loaded again.
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
