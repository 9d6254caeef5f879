// The data of the conversation's list: one row for each separate thing that the user sees.
import type { PromptImage, QuestionMessage } from "@tokenrail/client";

interface Common {
  /** Identifies the row when the rows are computed again. */
  readonly key: string;
  /** The number of the event from which the row is made, or of the newest such event. The raw JSON shows this event. */
  readonly sequence: number;
  readonly time: string;
  /** The type of the event, and its data. */
  readonly type: string;
}

export interface PromptRow extends Common {
  readonly kind: "prompt";
  readonly text: string;
  readonly turn?: number | undefined;
  readonly images?: readonly PromptImage[] | undefined;
}

export interface TextRow extends Common {
  readonly kind: "text" | "thinking";
  readonly text: string;
  readonly streaming: boolean;
  /** The number of the first event of the message. */
  readonly began: number;
  /** The outcome of a message that was cut short. */
  readonly outcome?: string | undefined;
}

/**
 * `waiting`: the agent asks the user whether it may call the tool. `rejected`: the user did not allow it. `expired`: nobody
 * answered in time, and so it was not allowed.
 */
export type ToolState = "writing" | "running" | "waiting" | "done" | "failed" | "rejected" | "expired" | "stopped";

export interface ToolRow extends Common {
  readonly kind: "tool";
  readonly callId: string;
  readonly name: string;
  /** The input as JSON, or the part of its text that has arrived. */
  readonly input: unknown;
  readonly state: ToolState;
  readonly output?: unknown;
  /** What the call has changed in files, as a unified diff, if its result says so. */
  readonly patch?: string | undefined;
  readonly took?: number | undefined;
  /** The rows of the sub-agent that this call started. */
  readonly inner: readonly Row[];
  /** The permission requests for this call. */
  readonly asked: readonly QuestionRow[];
}

export interface ErrorRow extends Common {
  readonly kind: "error";
  readonly text: string;
  readonly class: string;
  readonly code?: string | undefined;
  readonly retryAfter?: number | undefined;
  readonly recoverable: boolean;
}

export interface ResultRow extends Common {
  readonly kind: "result";
  readonly outcome: string;
  readonly durationMs: number;
  readonly costUsd?: number | undefined;
  readonly usage?: unknown;
  readonly requests?: number | undefined;
}

export interface QuestionRow extends Common {
  readonly kind: "question";
  readonly question: QuestionMessage;
}

export interface NoticeRow extends Common {
  readonly kind: "notice";
  readonly name: string;
  readonly data: unknown;
}

/** Calls that succeeded, one after the other, shown as one line. */
export interface GroupRow extends Common {
  readonly kind: "group";
  readonly calls: readonly ToolRow[];
}

export type Row = PromptRow | TextRow | ToolRow | GroupRow | QuestionRow | ErrorRow | ResultRow | NoticeRow;

/** The permission request of a row that waits for the user. */
export function openQuestionOf(row: Row | undefined): QuestionRow | undefined {
  if (row?.kind === "question") return row.question.state === "open" ? row : undefined;
  return row?.kind === "tool" ? row.asked.find(({ question }) => question.state === "open") : undefined;
}

/** Whether a row is this one, or has grown around it: a group has the key of its first call, which may change. */
export function hasKey(row: Row, key: string | undefined): boolean {
  if (row.key === key) return true;
  return row.kind === "group" && row.calls.some((call) => call.key === key || groupKey(call) === key);
}

/** The key of the group that begins with a call. */
export function groupKey(first: ToolRow): string {
  return `${first.key} group`;
}
