import type { AgentMessage } from "@tokenrail/client";

import type { Timeline } from "./timing.ts";

/** The approximate number of characters per token, as is common for English and code. */
const charactersOfToken = 4;

/** The approximate number of tokens in a delta. Other events have none. */
export function tokensIn(event: AgentMessage): number {
  if (!event.metadata.eventType.endsWith("_delta") || typeof event.content !== "string") return 0;
  return event.content.length / charactersOfToken;
}

/** Tokens per second in each of `parts` equal parts of the timeline. */
export function ratesOf(events: readonly AgentMessage[], timeline: Timeline, parts: number): number[] {
  const sums = new Array<number>(parts).fill(0);
  const partMs = Math.max(1, timeline.length) / parts;
  events.forEach((event, index) => {
    const part = Math.min(parts - 1, Math.floor((timeline.at[index] ?? 0) / partMs));
    sums[part] = (sums[part] ?? 0) + tokensIn(event);
  });
  return sums.map((sum) => sum / (partMs / 1000));
}

/** The amount of text in each of the newest seconds of a running stream. */
export class LiveRate {
  readonly #seconds: number;
  #counts: number[] = [];
  #second = 0;

  constructor(seconds: number) {
    this.#seconds = seconds;
  }

  /** Adds the characters since the previous call. */
  see(more: number, nowMs: number): void {
    this.#moveTo(Math.floor(nowMs / 1000));
    const last = this.#counts.length - 1;
    this.#counts[last] = (this.#counts[last] ?? 0) + more / charactersOfToken;
  }

  /** Tokens per second, oldest first. The length is always the same. */
  rates(): number[] {
    return [...new Array<number>(this.#seconds - this.#counts.length).fill(0), ...this.#counts];
  }

  /** The tokens of the last complete second. */
  current(): number {
    return this.#counts.at(-2) ?? this.#counts.at(-1) ?? 0;
  }

  #moveTo(second: number): void {
    if (this.#counts.length === 0) this.#counts = [0];
    else for (let quiet = Math.min(second - this.#second, this.#seconds); quiet > 0; quiet--) this.#counts.push(0);
    this.#counts = this.#counts.slice(-this.#seconds);
    this.#second = second;
  }
}
