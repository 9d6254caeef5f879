// `client.follow`: a follower as an async iterator.
import { Backoff } from "./backoff.js";
import type { FollowOptions } from "./api.js";
import { asError } from "./errors.js";
import type { AgentEvent } from "./frames.js";
import type { Agent, AgentStatus } from "./generated/wire.js";
import { type Hub, type Seat, hasEnded } from "./hub.js";
import { pause } from "./timers.js";

type Result = IteratorResult<AgentEvent, undefined>;
const DONE: Result = { done: true, value: undefined };

export class Following implements AsyncIterableIterator<AgentEvent, undefined> {
  #seat: Seat | undefined;
  #isOver = false;
  /** The number of the newest event that was returned. */
  #given: number;
  /** When this was its newest event, the agent had ended. */
  #mayEndAt = Number.POSITIVE_INFINITY;
  /** The current request for the agent's status, which finds out whether the agent has ended. */
  #asking: symbol | undefined;
  readonly #leaving = new AbortController();
  readonly #take: () => Seat;
  readonly #agent: (signal: AbortSignal) => Promise<Agent>;
  readonly #untilEnded: boolean;
  readonly #signal: AbortSignal | undefined;

  constructor(hub: Hub, agent: (signal: AbortSignal) => Promise<Agent>, id: string, options: FollowOptions) {
    const { since = 0, untilEnded = false, signal } = options;
    this.#given = since;
    this.#agent = agent;
    this.#untilEnded = untilEnded;
    this.#signal = signal;
    this.#take = () =>
      hub.follow(id, since, (head, status) => {
        // If no more events arrive, no event reports that the agent has ended.
        if (untilEnded) this.#stands(head, status);
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
      const mayBeLast = event.metadata.eventType === "result" || this.#given >= this.#mayEndAt;
      if (this.#untilEnded && mayBeLast) void this.#endIfOver();
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

  #stands(head: number, status: AgentStatus): void {
    if (!hasEnded(status)) return;
    if (head <= this.#given) this.#seat?.follower.end();
    else this.#mayEndAt = head;
  }

  /** Ends if there are no events after the returned ones. The turn that ended may not have been the last one. */
  async #endIfOver(): Promise<void> {
    const question = Symbol();
    this.#asking = question;
    const { signal } = this.#leaving;
    const backoff = new Backoff();
    while (this.#asking === question && !signal.aborted) {
      try {
        const { head, status } = await this.#agent(signal);
        return this.#stands(head, status);
      } catch (thrown) {
        if (signal.aborted) return;
        const error = asError(thrown);
        if (!error.retryable) return this.#seat?.follower.fail(error);
        await pause(backoff.next(error.retryAfterMs), signal).catch(() => {});
      }
    }
  }

  #end = (): void => {
    this.#isOver = true;
    this.#leaving.abort();
    this.#signal?.removeEventListener("abort", this.#end);
    this.#seat?.leave();
  };
}
