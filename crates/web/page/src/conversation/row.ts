// What the conversation is drawn from: one row for each thing that a reader would point at.
import type { QuestionMessage } from "@tokenrail/client";

interface Common {
  /** The same row at the next look. */
  readonly key: string;
  /** The number of the event that it is made of, or the newest of them: what is shown as raw JSON. */
  readonly sequence: number;
  readonly time: string;
  /** The event's own type, and what it says of itself. */
  readonly type: string;
}

export interface PromptRow extends Common {
  readonly kind: "prompt";
  readonly text: string;
}

export interface TextRow extends Common {
  readonly kind: "text" | "thinking";
  readonly text: string;
  readonly streaming: boolean;
  /** Why it was cut short, where it was. */
  readonly outcome?: string | undefined;
}

export type ToolState = "writing" | "running" | "done" | "failed" | "stopped";

export interface ToolRow extends Common {
  readonly kind: "tool";
  readonly callId: string;
  readonly name: string;
  /** JSON, or as much of its text as has come. */
  readonly input: unknown;
  readonly state: ToolState;
  readonly output?: unknown;
  readonly took?: number | undefined;
  /** What a sub-agent says and does for this call. */
  readonly inner: readonly Row[];
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

export type Row = PromptRow | TextRow | ToolRow | QuestionRow | ErrorRow | ResultRow | NoticeRow;
