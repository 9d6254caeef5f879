import type { Item } from "@tokenrail/client";

/**
 * How long the newest turn has taken, or takes by now where it runs; undefined while its beginning is not known. An agent
 * may wait for days between two turns: that is no time of its own.
 */
export function turnTime(items: readonly Item[], now: number | undefined): number | undefined {
  const result = items.findLastIndex(({ kind }) => kind === "result");
  if (now === undefined) {
    const ended = items[result];
    return ended?.kind === "result" ? ended.durationMs : undefined;
  }
  const first = items.find(({ kind }, index) => index > result && kind === "user") ?? items[result + 1];
  // Where there is no result, the first of the items may be from the middle of the turn.
  if (!first || (result < 0 && first.sequence > 1)) return undefined;
  return Math.max(0, now - Date.parse(first.createdAt));
}
