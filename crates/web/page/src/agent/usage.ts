export interface Tokens {
  readonly input: number;
  /** The part of the input that was read from a cache. */
  readonly cached: number;
  readonly output: number;
}

type Fields = Readonly<Record<string, unknown>>;

/** The tokens in the usage of any agent. Each agent has its own field names. */
export function tokensOf(usage: unknown): Tokens | undefined {
  const fields = fieldsIn(usage);
  const readers = [inSnakeCase, inCamelCase, byOpencode];
  return readers.map((read) => read(fields)).find(({ input, output }) => input + output > 0);
}

/**
 * Anthropic counts cached tokens separately from the input. OpenAI, Codex and Gemini count them as a part of the input.
 */
function inSnakeCase(fields: Fields): Tokens {
  const read = sumOf(fields, "cache_read_input_tokens");
  const details = [fields.input_tokens_details, fields.prompt_tokens_details];
  return {
    input: sumOf(fields, "input_tokens", "prompt_tokens", "cache_creation_input_tokens") + read,
    cached: read + sumOf(fields, "cached_input_tokens", "cached") + sumOf(fieldsIn(details.find(Boolean)), "cached_tokens"),
    output: sumOf(fields, "output_tokens", "completion_tokens"),
  };
}

/** The Agent Client Protocol and Codex `app-server`. The total shows whether the input includes cached tokens. */
function inCamelCase(fields: Fields): Tokens {
  const output = sumOf(fields, "outputTokens");
  return {
    input: Math.max(sumOf(fields, "inputTokens"), sumOf(fields, "totalTokens") - output),
    cached: sumOf(fields, "cachedReadTokens", "cachedInputTokens"),
    output,
  };
}

/** The total shows whether the output includes the reasoning tokens. */
function byOpencode(fields: Fields): Tokens {
  const cache = fieldsIn(fields.cache);
  const input = sumOf(fields, "input") + sumOf(cache, "read", "write");
  return { input, cached: sumOf(cache, "read"), output: Math.max(sumOf(fields, "output"), sumOf(fields, "total") - input) };
}

function fieldsIn(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}

function sumOf(fields: Fields, ...names: string[]): number {
  return names.reduce((total, name) => total + numberIn(fields[name]), 0);
}

function numberIn(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
