export interface BackoffOptions {
  /** The upper limit of the first pause, in milliseconds. */
  firstMs?: number;
  /** The upper limit of all pauses, in milliseconds. */
  maxMs?: number;
  /** Returns a number from 0 to 1. Default: `Math.random`. */
  random?: () => number;
}

/**
 * Pauses that double. Each is a random value from the upper half of its range. So clients that lost the same server do
 * not reconnect at the same moment, and none reconnects immediately.
 */
export class Backoff {
  #attempt = 0;
  readonly #first: number;
  readonly #max: number;
  readonly #random: () => number;

  constructor({ firstMs = 500, maxMs = 10_000, random = Math.random }: BackoffOptions = {}) {
    this.#first = firstMs;
    this.#max = maxMs;
    this.#random = random;
  }

  /** Returns the next pause, which is never shorter than the server requests. */
  next(atLeastMs = 0): number {
    const longest = Math.min(this.#max, this.#first * 2 ** Math.min(this.#attempt, 16));
    this.#attempt += 1;
    return Math.max(atLeastMs, Math.round(longest * (0.5 + this.#random() / 2)));
  }

  reset(): void {
    this.#attempt = 0;
  }
}
