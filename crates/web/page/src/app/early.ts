/** Asks for something before there is a client for it; the client is then given the answers that are on their way. */
export class EarlyAnswers {
  readonly #answers = new Map<string, Promise<Response>>();
  readonly #token: string;

  constructor(token: string) {
    this.#token = token;
  }

  ask(path: string): void {
    const answer = fetch(path, { headers: { Authorization: `Bearer ${this.#token}` } });
    // Whoever takes it is told what is wrong; where nobody does, it does not matter.
    answer.catch(() => undefined);
    this.#answers.set(new URL(path, location.origin).href, answer);
  }

  /** Each answer is given once: who asks again wants to know what is so now. */
  readonly fetch: typeof globalThis.fetch = (input, init) => {
    const address = typeof input === "string" && (init?.method ?? "GET") === "GET" ? input : "";
    const answer = this.#answers.get(address);
    this.#answers.delete(address);
    return answer ?? fetch(input, init);
  };
}
