// When each event of a finished agent was said, as a line of time that can be played.

/** Between turns a person was thinking: that is left out, but for a breath. */
export const breathMs = 800;

export interface Timed {
  readonly createdAt: string;
  readonly metadata: { readonly eventType: string };
}

export interface Timeline {
  /** Of each event: milliseconds from the beginning. Never less than that of the event before. */
  readonly at: readonly number[];
  readonly length: number;
}

export function timelineOf(events: readonly Timed[]): Timeline {
  const at: number[] = [];
  let now = 0;
  let before: number | undefined;
  for (const event of events) {
    const time = Date.parse(event.createdAt);
    // A clock that was set back must not make the line go back.
    const pause = before === undefined ? 0 : Math.max(0, time - before);
    now += event.metadata.eventType === "user_message" ? Math.min(pause, breathMs) : pause;
    at.push(now);
    before = time;
  }
  return { at, length: now };
}

/** How many events have been said at this moment, the one of the moment itself included. */
export function saidAt({ at }: Timeline, moment: number): number {
  let [low, high] = [0, at.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((at[middle] ?? 0) <= moment) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Where playing has come to: never beyond the end. */
export function playedTo({ length }: Timeline, from: number, elapsedMs: number, speed: number): number {
  return Math.min(length, from + elapsedMs * speed);
}
