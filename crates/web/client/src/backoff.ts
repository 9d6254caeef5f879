export interface BackoffOptions {
  /** The longest first pause. */
  firstMs?: number;
  /** The longest pause of all. */
  maxMs?: number;
  /** From 0 to 1; `Math.random` where it is left out. */
  random?: () => number;
}

/**
 * Pauses that double, each drawn from its upper half: clients that have lost the same server do not come back at the
 * same moment, and none comes back at once.
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

  /** The next pause; never shorter than what the server asks for. */
  next(atLeastMs = 0): number {
    const longest = Math.min(this.#max, this.#first * 2 ** Math.min(this.#attempt, 16));
    this.#attempt += 1;
    return Math.max(atLeastMs, Math.round(longest * (0.5 + this.#random() / 2)));
  }

  reset(): void {
    this.#attempt = 0;
  }
}
