import {
  type Agent,
  type AgentMessage,
  type AgentType,
  type CancelOptions,
  type Changes,
  type Client,
  type ConnectionSnapshot,
  type NewImage,
  type PatchQuery,
  TokenrailError,
} from "@tokenrail/client";
import { vi } from "vitest";

export const away = () => new TokenrailError("network", "cannot reach the server", { retryable: true });

/** A client of a server with one agent. The test says when the connection is lost, and which events arrive. */
export class FakeClient {
  agentNow = {
    ...{ id: "a", type: "fake", status: "running", prompt: "go", cwd: "/tmp", turn: 1, queued: 0, openQuestions: 0 },
    ...{ head: 0, createdAt: "2026-11-22T06:42:10.000Z" },
  } as unknown as Agent;
  #state: ConnectionSnapshot = { state: "open" };
  readonly #listeners = new Set<() => void>();
  readonly #arrived: AgentMessage[] = [];
  #wake = () => {};

  readonly agent = vi.fn(() => Promise.resolve(this.agentNow));
  readonly send = vi.fn((_id: string, _body: { content: string; images?: NewImage[] }, _options: { idempotencyKey: string }) =>
    Promise.resolve({ turn: 2, queued: true }),
  );
  readonly cancel = vi.fn((_id: string, _options?: CancelOptions) => Promise.resolve({ agentId: "a" }));
  readonly turns = vi.fn(() => Promise.resolve([]));
  readonly changes = vi.fn((): Promise<Changes> => Promise.resolve({ source: "none", reason: "no_commit", detail: "none" }));
  readonly patch = vi.fn((_id: string, _query?: PatchQuery) => Promise.resolve({ text: "", truncated: false }));
  readonly agentTypes = vi.fn((): Promise<AgentType[]> => Promise.resolve([]));
  readonly server = vi.fn((): Promise<{ pid?: number }> => Promise.resolve({ pid: 4711 }));
  readonly promptImage = vi.fn((_id: string, _turn: number, _position: number) => Promise.resolve(new Blob([])));
  readonly retryNow = vi.fn();

  readonly connection = {
    snapshot: () => this.#state,
    get state() {
      return this.snapshot().state;
    },
    subscribe: (listener: () => void) => {
      this.#listeners.add(listener);
      return () => this.#listeners.delete(listener);
    },
    retryNow: this.retryNow,
  };

  become(state: ConnectionSnapshot): void {
    this.#state = state;
    for (const listener of [...this.#listeners]) listener();
  }

  arrive(events: readonly AgentMessage[]): void {
    this.#arrived.push(...events);
    this.#wake();
  }

  messagesPage = () => Promise.resolve({ messages: [], since: 0, upTo: 0, head: 0 });

  async *follow(): AsyncGenerator<AgentMessage> {
    for (;;) {
      const event = this.#arrived.shift();
      if (event) yield event;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  async *watch(): AsyncGenerator<never> {
    await new Promise(() => {});
  }

  get client(): Client {
    return this as unknown as Client;
  }
}
