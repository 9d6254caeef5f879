export interface Tokens {
  readonly input: number;
  /** Of the input: what was read from a cache. */
  readonly cached: number;
  readonly output: number;
}

/** The tokens in a usage of any agent: each has names of its own for them. */
export function tokensOf(usage: unknown): Tokens | undefined {
  if (typeof usage !== "object" || usage === null) return undefined;
  const fields = usage as Record<string, unknown>;
  const sum = (...names: string[]) => names.reduce((total, name) => total + numberIn(fields[name]), 0);
  const cached = sum("cache_read_input_tokens", "cached_input_tokens", "cached");
  const input = sum("input_tokens", "prompt_tokens", "cache_creation_input_tokens", "cache_read_input_tokens");
  const output = sum("output_tokens", "completion_tokens");
  return input + output > 0 ? { input, cached, output } : undefined;
}

function numberIn(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
