/** The values of these fields are remembered for the next launch. */
export type Remembered = "model" | "cwd" | "type";

/** How many values of a field are remembered. */
const rememberedValues = 8;

/** A longer value is not remembered, so that the storage is bounded. */
const valueLength = 1_000;

/** The values that were used in this browser, newest first. */
export function recent(field: Remembered): string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(keyOf(field)) ?? "[]");
    return Array.isArray(kept) ? kept.filter((value) => typeof value === "string").slice(0, rememberedValues) : [];
  } catch {
    // The storage may be disabled, or contain something else.
    return [];
  }
}

export function remember(field: Remembered, value: string | undefined): void {
  if (!value || value.length > valueLength) return;
  const values = [value, ...recent(field).filter((other) => other !== value)].slice(0, rememberedValues);
  try {
    localStorage.setItem(keyOf(field), JSON.stringify(values));
  } catch {
    // Without storage, nothing is remembered.
  }
}

function keyOf(field: Remembered): string {
  return `tokenrail-recent-${field}`;
}
