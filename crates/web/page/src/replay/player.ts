import { type AgentMessage, applyEvents, emptyTranscript, type Transcript } from "@tokenrail/client";

/**
 * A transcript is kept after each of these numbers of events. To go back, the player continues from the kept one
 * before.
 */
const keptEvery = 500;

/**
 * Returns the transcript of the first events of an agent, for any number of events. Transcripts share unchanged items.
 */
export class Player {
  readonly #events: readonly AgentMessage[];
  readonly #kept: Transcript[] = [emptyTranscript];
  #at = 0;
  #transcript = emptyTranscript;

  constructor(events: readonly AgentMessage[]) {
    this.#events = events;
  }

  after(count: number): Transcript {
    const wanted = Math.max(0, Math.min(count, this.#events.length));
    const start = Math.min(Math.floor(wanted / keptEvery), this.#kept.length - 1);
    if (wanted < this.#at || this.#at < start * keptEvery) {
      this.#at = start * keptEvery;
      this.#transcript = this.#kept[start] ?? emptyTranscript;
    }
    while (this.#at < wanted) this.#goOn(Math.min(wanted, (Math.floor(this.#at / keptEvery) + 1) * keptEvery));
    return this.#transcript;
  }

  #goOn(to: number): void {
    this.#transcript = applyEvents(this.#transcript, this.#events.slice(this.#at, to));
    this.#at = to;
    if (to === this.#kept.length * keptEvery) this.#kept.push(this.#transcript);
  }
}
