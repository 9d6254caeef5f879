// The answer of a sub-agent is the output of its call, and usually also the last of its messages.
import { fieldsOf } from "../../content/given.ts";
import { asText } from "../../content/text.ts";
import type { ToolRow } from "../row.ts";

/** Claude adds for the model how to continue the sub-agent, and what it has used. */
const forModel = /^(agentId: |<usage>)/;

/** The answer without what is only for the model. */
export function answerOfAgent(output: unknown): string {
  if (!Array.isArray(output)) return asText(output).trim();
  const isForModel = (block: unknown) => forModel.test(String(fieldsOf(block).text ?? ""));
  return asText(output.filter((block) => !isForModel(block))).trim();
}

export function isAnswerInside({ inner }: ToolRow, answer: string): boolean {
  const last = inner.findLast(({ kind }) => kind === "text");
  return last?.kind === "text" && last.text.trim() === answer;
}
