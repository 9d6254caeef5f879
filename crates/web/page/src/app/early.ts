import { base } from "../connection/address.ts";
import { send } from "./token.ts";

/** The first page of the list of agents, as the client library requests it. */
export const firstAgents = "/api/agents?limit=100";

/** Sends requests before the client library is loaded. The client then gets the pending responses. */
export class EarlyAnswers {
  readonly #answers = new Map<string, Promise<Response>>();
  readonly #token: string;

  constructor(token: string) {
    this.#token = token;
  }

  ask(path: string): Promise<Response> {
    const url = new URL(base + path, location.origin).href;
    const answer = fetch(url, this.#token ? { headers: { Authorization: `Bearer ${this.#token}` } } : {});
    // A caller that takes the response gets the error. If none does, the error does not matter.
    answer.catch(() => undefined);
    this.#answers.set(url, answer);
    return answer;
  }

  /** Each response is used only once: a later request needs the current state. */
  readonly fetch: typeof globalThis.fetch = (input, init) => {
    const address = typeof input === "string" && (init?.method ?? "GET") === "GET" ? input : "";
    const answer = this.#answers.get(address);
    this.#answers.delete(address);
    return answer ?? send(input, init);
  };
}
