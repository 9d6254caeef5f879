/** Runs something when it is asked to: one run at a time, and with a pause before each. */
export class Paced {
  readonly #act: () => Promise<void>;
  readonly #pauseMs: number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isRunning = false;
  #isWanted = false;
  #isOver = false;

  constructor(act: () => Promise<void>, pauseMs: number) {
    this.#act = act;
    this.#pauseMs = pauseMs;
  }

  /** Runs it after the pause. Asking again during the pause changes nothing, and during a run, it runs once more after it. */
  ask(): void {
    if (this.#isRunning) this.#isWanted = true;
    else if (!this.#isOver) this.#timer ??= setTimeout(() => void this.#run(), this.#pauseMs);
  }

  /** Runs it without a pause. */
  askNow(): void {
    if (this.#isRunning) this.#isWanted = true;
    else if (!this.#isOver) void this.#run();
  }

  /** Nothing runs any more, except for what runs already. */
  stop(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }

  async #run(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#isRunning = true;
    this.#isWanted = false;
    await this.#act();
    this.#isRunning = false;
    if (this.#isWanted) this.ask();
  }
}
