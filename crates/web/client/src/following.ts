// `client.follow`: a follower as an async iterator.
import type { FollowOptions } from "./client.js";
import type { AgentEvent } from "./frames.js";
import type { Agent } from "./generated/wire.js";
import { type Hub, type Seat, hasEnded } from "./hub.js";

type Result = IteratorResult<AgentEvent, undefined>;
const DONE: Result = { done: true, value: undefined };

export class Following implements AsyncIterableIterator<AgentEvent, undefined> {
  #seat: Seat | undefined;
  #isOver = false;
  /** The newest event that was given. */
  #given: number;
  readonly #take: () => Seat;
  readonly #agent: (signal?: AbortSignal) => Promise<Agent>;
  readonly #untilEnded: boolean;
  readonly #signal: AbortSignal | undefined;

  constructor(hub: Hub, agent: (signal?: AbortSignal) => Promise<Agent>, id: string, options: FollowOptions) {
    const { since = 0, untilEnded = false, signal } = options;
    this.#given = since;
    this.#agent = agent;
    this.#untilEnded = untilEnded;
    this.#signal = signal;
    this.#take = () =>
      hub.follow(id, since, (head, status) => {
        // Nothing will come, so no event would tell that it has ended.
        if (untilEnded && hasEnded(status) && head <= this.#given) this.#seat?.follower.end();
      });
    if (signal?.aborted) this.#isOver = true;
    else signal?.addEventListener("abort", this.#end, { once: true });
  }

  async next(): Promise<Result> {
    if (this.#isOver) return DONE;
    this.#seat ??= this.#take();
    try {
      const event = await this.#seat.follower.next();
      if (!event || this.#isOver) {
        this.#end();
        return DONE;
      }
      this.#given = event.sequenceNumber;
      if (this.#untilEnded && event.metadata.eventType === "result") await this.#endAfter(event);
      return { done: false, value: event };
    } catch (error) {
      this.#end();
      throw error;
    }
  }

  return(): Promise<Result> {
    this.#end();
    return Promise.resolve(DONE);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Ends if this was the last event; the turn that has ended may not have been the last one. */
  async #endAfter(event: AgentEvent): Promise<void> {
    try {
      const agent = await this.#agent(this.#signal);
      if (hasEnded(agent.status) && agent.head <= event.sequenceNumber) this.#seat?.follower.end();
    } catch {
      // Whether it has ended is told again when the connection is.
    }
  }

  #end = (): void => {
    this.#isOver = true;
    this.#signal?.removeEventListener("abort", this.#end);
    this.#seat?.leave();
  };
}
