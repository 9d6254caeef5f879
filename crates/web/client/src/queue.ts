/** What was told, for a reader that asks for it piece by piece. It begins with the first question. */
export class Queue<T> implements AsyncIterableIterator<T, undefined> {
  readonly ended: Promise<void>;
  #items: T[] = [];
  #waiting: ((result: IteratorResult<T, undefined>) => void) | undefined;
  #isOver = false;
  #over = () => {};
  #stop: (() => void) | undefined;
  readonly #start: (push: (item: T) => void) => () => void;
  readonly #signal: AbortSignal | undefined;

  constructor(start: (push: (item: T) => void) => () => void, signal?: AbortSignal) {
    this.#start = start;
    this.#signal = signal;
    this.ended = new Promise((resolve) => {
      this.#over = resolve;
    });
    if (signal?.aborted) this.end();
    else signal?.addEventListener("abort", this.end, { once: true });
  }

  next(): Promise<IteratorResult<T, undefined>> {
    if (this.#isOver) return Promise.resolve({ done: true, value: undefined });
    this.#stop ??= this.#start((item) => this.#push(item));
    const [item] = this.#items.splice(0, 1);
    if (item !== undefined) return Promise.resolve({ done: false, value: item });
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  return(): Promise<IteratorResult<T, undefined>> {
    this.end();
    return Promise.resolve({ done: true, value: undefined });
  }

  end = (): void => {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#items = [];
    this.#stop?.();
    this.#signal?.removeEventListener("abort", this.end);
    this.#waiting?.({ done: true, value: undefined });
    this.#over();
  };

  [Symbol.asyncIterator](): this {
    return this;
  }

  #push(item: T): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting) waiting({ done: false, value: item });
    else this.#items.push(item);
  }
}
