import type { Client } from "@tokenrail/client";

import { type Access, send } from "./token.ts";

/**
 * Whether the page has access: `asked` if it has none, `wrong` and `spent` if the server has refused a token or a login
 * code, `unknown` until the server has answered.
 */
export type Door = "open" | "unknown" | "asked" | "wrong" | "spent";

/** Why the server refuses the page's requests. */
export function closed({ token, refused }: Access): Door {
  if (refused === "code") return "spent";
  return refused === "token" || token ? "wrong" : "asked";
}

/** What the response to the page's first request says. Only a refused login closes the door. */
export async function doorOf(answer: Promise<Response>, access: Access): Promise<Door> {
  const status = await answer.then(({ status }) => status).catch(() => undefined);
  return status === 401 ? closed(access) : "open";
}

/**
 * Sends requests, and reports a response that says that the page has no access any more. Each login begins a new period:
 * a late response to an earlier request says nothing about it.
 */
export class Gate {
  #send: typeof globalThis.fetch;
  readonly #listeners = new Set<() => void>();
  #period = 0;

  constructor(first: typeof globalThis.fetch) {
    this.#send = first;
  }

  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const period = this.#period;
    const response = await this.#send(input, init);
    if (response.status === 401 && period === this.#period) for (const listener of [...this.#listeners]) listener();
    return response;
  };

  readonly onRefused = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** A login begins. Responses to requests that were sent before the page was shown are not used any more. */
  begin(): void {
    this.#period += 1;
    this.#send = send;
  }
}

/**
 * A browser does not say why it could not open a WebSocket: a session that has ended looks like a lost network. So each
 * time the connection is lost, one small request asks whether the page still has access.
 */
export function askWhenLost(client: Client): () => void {
  return client.connection.subscribe(() => {
    // If there is no response, the connection says it already.
    if (client.connection.state === "waiting") client.agents({ limit: 1 }).catch(() => undefined);
  });
}
