import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

import { tokensOf } from "../src/agent/usage.ts";

const recordings = join(import.meta.dirname, "../../../../tests/fixtures");

// One of each agent, as its recording has it; where the recorded ones used no cache, with a number for it.
test.each([
  ["claude", { input_tokens: 9, cache_creation_input_tokens: 100, cache_read_input_tokens: 1_000, output_tokens: 52 }, 1_109, 1_000, 52],
  ["codex exec", { input_tokens: 21_074, cached_input_tokens: 7_000, cache_write_input_tokens: 0, output_tokens: 69, reasoning_output_tokens: 9 }, 21_074, 7_000, 69],
  ["codex app-server", { totalTokens: 13_988, inputTokens: 13_952, cachedInputTokens: 6_000, cacheWriteInputTokens: 0, outputTokens: 36, reasoningOutputTokens: 0 }, 13_952, 6_000, 36],
  ["claude by ACP", { inputTokens: 2_499, outputTokens: 21, cachedReadTokens: 500, cachedWriteTokens: 40, totalTokens: 3_060 }, 3_039, 500, 21],
  ["opencode by ACP", { inputTokens: 119, outputTokens: 4, totalTokens: 123 }, 119, 0, 4],
  ["gemini by ACP", { input_tokens: 140, output_tokens: 21 }, 140, 0, 21],
  ["gemini", { total_tokens: 452, input_tokens: 433, output_tokens: 19, cached: 30, input: 403, duration_ms: 23_954, tool_calls: 1, models: {} }, 433, 30, 19],
  ["opencode", { total: 1_116, input: 92, output: 20, reasoning: 4, cache: { write: 300, read: 700 } }, 1_092, 700, 24],
  ["chat completions", { prompt_tokens: 12, completion_tokens: 34, total_tokens: 46, prompt_tokens_details: { cached_tokens: 5 } }, 12, 5, 34],
  ["responses", { input_tokens: 12, input_tokens_details: { cached_tokens: 7 }, output_tokens: 34, total_tokens: 46 }, 12, 7, 34],
])("the tokens of %s", (_, usage, input, cached, output) => {
  expect(tokensOf(usage)).toEqual({ input, cached, output });
});

test.each([undefined, null, 7, "many", {}, { used: 2_500, size: 1_000_000 }, { inputTokens: "7" }])("in %j there are none", (usage) => {
  expect(tokensOf(usage)).toBeUndefined();
});

/** The fields under which a recording tells what a turn took. */
const fields: Record<string, readonly string[]> = {
  acp: ["usage", "token_count"],
  claude: ["usage"],
  codex: ["usage", "total"],
  gemini: ["stats"],
  opencode: ["tokens"],
};

test.each(Object.keys(fields))("every usage that is recorded of %s and counts something is read", (agent) => {
  const found = filesIn(join(recordings, agent)).flatMap((file) => usagesIn(file, fields[agent] ?? []));
  expect(found.length).toBeGreaterThan(0);
  expect(found.filter((usage) => tokensOf(usage) === undefined)).toEqual([]);
});

function filesIn(folder: string): string[] {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return files.filter((file) => file.endsWith(".jsonl")).map((file) => join(folder, file));
}

function usagesIn(file: string, names: readonly string[]): unknown[] {
  const found: unknown[] = [];
  const look = (name: string, value: unknown) => {
    if (names.includes(name) && counts(value)) found.push(value);
    return value;
  };
  for (const line of readFileSync(file, "utf8").split("\n")) {
    try {
      JSON.parse(line, look);
    } catch {
      // Some recordings are of agents that print what is no JSON.
    }
  }
  return found;
}

/** What tells of the output is of a turn or of a step; of a task of its own Claude tells the total alone. */
function counts(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const names = Object.keys(value);
  return names.some((name) => name.startsWith("output")) && Object.values(value).some((each) => typeof each === "number" && each > 0);
}
