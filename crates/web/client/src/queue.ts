/** Starts a source of items. The returned function stops it. */
type Start<T> = (push: (item: T) => void, fail: (error: unknown) => void) => () => void;

/** Queues items for a reader that takes them one by one. The source starts with the first read. */
export class Queue<T> implements AsyncIterableIterator<T, undefined> {
  readonly ended: Promise<void>;
  #items: T[] = [];
  /** Callers that wait for an item, in order. */
  readonly #waiting: { resolve(result: IteratorResult<T, undefined>): void; reject(error: unknown): void }[] = [];
  #error: unknown;
  #isOver = false;
  #over = () => {};
  #stop: (() => void) | undefined;
  readonly #start: Start<T>;
  readonly #signal: AbortSignal | undefined;

  constructor(start: Start<T>, signal?: AbortSignal) {
    this.#start = start;
    this.#signal = signal;
    this.ended = new Promise((resolve) => {
      this.#over = resolve;
    });
    if (signal?.aborted) this.end();
    else signal?.addEventListener("abort", this.end, { once: true });
  }

  next(): Promise<IteratorResult<T, undefined>> {
    if (!this.#isOver) this.#stop ??= this.#start(this.#push, this.#fail);
    const [item] = this.#items.splice(0, 1);
    if (item !== undefined) return Promise.resolve({ done: false, value: item });
    const error = this.#error;
    this.#error = undefined;
    if (error !== undefined) return Promise.reject(error);
    if (this.#isOver) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
    });
  }

  return(): Promise<IteratorResult<T, undefined>> {
    this.end();
    return Promise.resolve({ done: true, value: undefined });
  }

  /** Stops the source, and drops all queued items. */
  end = (): void => {
    this.#items = [];
    this.#error = undefined;
    this.#leave();
  };

  [Symbol.asyncIterator](): this {
    return this;
  }

  #push = (item: T): void => {
    if (this.#isOver) return;
    const waiting = this.#waiting.shift();
    if (waiting) waiting.resolve({ done: false, value: item });
    else this.#items.push(item);
  };

  /** Reports an error once, after all items that were queued before it. */
  #fail = (error: unknown): void => {
    if (this.#isOver) return;
    const first = this.#waiting.shift();
    if (first) first.reject(error);
    else this.#error = error;
    this.#leave();
  };

  #leave(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stop?.();
    this.#signal?.removeEventListener("abort", this.end);
    for (const { resolve } of this.#waiting.splice(0)) resolve({ done: true, value: undefined });
    this.#over();
  }
}
