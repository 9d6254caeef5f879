// The timeline of a finished agent: when each of its events happened.

/** The time between turns, in which the user was thinking, is reduced to this. */
export const breathMs = 800;

export interface Timed {
  readonly createdAt: string;
  readonly metadata: { readonly eventType: string };
}

export interface Timeline {
  /** The time of each event, in milliseconds from the beginning. It never decreases. */
  readonly at: readonly number[];
  readonly length: number;
}

export function timelineOf(events: readonly Timed[]): Timeline {
  const at: number[] = [];
  let now = 0;
  let before: number | undefined;
  for (const event of events) {
    const time = Date.parse(event.createdAt);
    // If the clock was set back, the time in the timeline must not decrease.
    const pause = before === undefined ? 0 : Math.max(0, time - before);
    now += event.metadata.eventType === "user_message" ? Math.min(pause, breathMs) : pause;
    at.push(now);
    before = time;
  }
  return { at, length: now };
}

/** How many events have happened at this moment, including an event at the moment itself. */
export function saidAt({ at }: Timeline, moment: number): number {
  let [low, high] = [0, at.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((at[middle] ?? 0) <= moment) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The moment that playback has reached, which is never beyond the end. */
export function playedTo({ length }: Timeline, from: number, elapsedMs: number, speed: number): number {
  return Math.min(length, from + elapsedMs * speed);
}
