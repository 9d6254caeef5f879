import type { Item } from "@tokenrail/client";

/**
 * How long the newest turn took, or has taken until now if it is running. Undefined if its beginning is not known. The
 * time between turns, which may be days, does not count.
 */
export function turnTime(items: readonly Item[], now: number | undefined): number | undefined {
  const result = items.findLastIndex(({ kind }) => kind === "result");
  if (now === undefined) {
    const ended = items[result];
    return ended?.kind === "result" ? ended.durationMs : undefined;
  }
  const first = items.find(({ kind }, index) => index > result && kind === "user") ?? items[result + 1];
  // Without a result, the first item may be from the middle of the turn.
  if (!first || (result < 0 && first.sequence > 1)) return undefined;
  return Math.max(0, now - Date.parse(first.createdAt));
}
