// One reader of one agent. It has its own cursor and a queue of limited length, and reads missed events from pages.
import { Backoff } from "./backoff.js";
import { TokenrailError, asError } from "./errors.js";
import type { AgentEvent } from "./frames.js";
import { pause } from "./timers.js";

/** How many events wait for a slow reader. Further events are read from the server again when there is space. */
const QUEUE = 4096;

/** Reads a page of all events, including deltas, without gaps. */
export type EventsAfter = (since: number, signal: AbortSignal) => Promise<AgentEvent[]>;

interface Waiter {
  resolve(event: AgentEvent | undefined): void;
  reject(error: unknown): void;
}

/** The position of the live frames: all events up to `last` have been offered. */
export interface Live {
  readonly last: number;
}

export class Follower {
  /** The number of the newest event that was queued or taken. */
  #last: number;
  #queue: AgentEvent[] = [];
  #taken = 0;
  /** Callers that wait for an event, in order. */
  readonly #waiting: Waiter[] = [];
  #error: TokenrailError | undefined;
  #ended = false;
  #filling = false;
  /** Aborts the wait for a page. */
  #asking = new AbortController();
  readonly #leaving = new AbortController();
  readonly #live: Live;
  readonly #page: EventsAfter;

  constructor(since: number, live: Live, page: EventsAfter) {
    this.#last = since;
    this.#live = live;
    this.#page = page;
  }

  get last(): number {
    return this.#last;
  }

  /**
   * Takes a live event. A known event is dropped, and the next event is queued. Before any other event, the gap is
   * filled.
   */
  offer(event: AgentEvent): void {
    if (this.#ended || event.sequenceNumber <= this.#last) return;
    if (event.sequenceNumber === this.#last + 1 && this.#waits < QUEUE) this.#push(event);
    else this.catchUp();
  }

  /** Reads pages until no event before the live frames is missing. */
  catchUp(): void {
    if (this.#ended || this.#filling || this.#last >= this.#live.last || this.#waits >= QUEUE) return;
    this.#filling = true;
    this.#fill(this.#leaving.signal).then(
      () => {
        this.#filling = false;
      },
      (error) => {
        this.#filling = false;
        if (!this.#leaving.signal.aborted) this.fail(asError(error));
      },
    );
  }

  /** The server is reachable again. An earlier request for a page may never get a response, so it is sent again. */
  askAgain(): void {
    this.#asking.abort();
  }

  /** The next event, or undefined at the end. An error is thrown only once. */
  next(): Promise<AgentEvent | undefined> {
    const event = this.#take();
    if (event) return Promise.resolve(event);
    const error = this.#error;
    this.#error = undefined;
    if (error) return Promise.reject(error);
    if (this.#ended) return Promise.resolve(undefined);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
    });
  }

  /** No more events arrive. Queued events can still be taken. */
  end(): void {
    this.#ended = true;
    this.#leaving.abort();
    for (const { resolve } of this.#waiting.splice(0)) resolve(undefined);
  }

  fail(error: TokenrailError): void {
    if (this.#ended) return;
    const first = this.#waiting.shift();
    if (first) first.reject(error);
    else this.#error = error;
    this.end();
  }

  /** The reader leaves. Queued events are dropped. */
  leave(): void {
    this.#queue = [];
    this.#taken = 0;
    this.end();
  }

  get #waits(): number {
    return this.#queue.length - this.#taken;
  }

  async #fill(signal: AbortSignal): Promise<void> {
    const backoff = new Backoff();
    while (this.#last < this.#live.last && this.#waits < QUEUE) {
      const asking = new AbortController();
      this.#asking = asking;
      const either = AbortSignal.any([signal, asking.signal]);
      try {
        const since = this.#last;
        const events = await this.#page(since, either);
        if (signal.aborted) return;
        for (const event of events) if (event.sequenceNumber === this.#last + 1) this.#push(event);
        if (this.#last === since) throw new TokenrailError("protocol", "a page of events does not begin at the expected sequence number", { retryable: true });
        backoff.reset();
      } catch (thrown) {
        if (signal.aborted) return;
        if (asking.signal.aborted) continue;
        const error = asError(thrown);
        if (!error.retryable) throw error;
        await pause(backoff.next(error.retryAfterMs), either).catch(() => {});
      }
    }
  }

  #push(event: AgentEvent): void {
    this.#last = event.sequenceNumber;
    const waiting = this.#waiting.shift();
    if (waiting) waiting.resolve(event);
    else this.#queue.push(event);
  }

  #take(): AgentEvent | undefined {
    if (this.#waits === 0) return undefined;
    const event = this.#queue[this.#taken];
    this.#taken += 1;
    if (this.#taken === this.#queue.length) {
      this.#queue = [];
      this.#taken = 0;
      // Reads the events for which there was no space in the queue.
      this.catchUp();
    }
    return event;
  }
}
