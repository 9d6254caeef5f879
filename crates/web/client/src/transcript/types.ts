// The parts of a conversation. All objects are immutable: an unchanged part remains the same object.
import type { AcceptedAnswers, AgentError, IsoTime, MessageOutcome, PromptImage, TurnOutcome } from "../generated/wire.js";

interface Placed {
  /** Unique, and the same on each reading. For an assistant message, this is its `messageId`. */
  readonly id: string;
  /** The place of the item: the number of its first event. No two items have the same number. */
  readonly sequence: number;
  /** The number of the newest event that changed the item, not counting items that are nested in it. */
  readonly changed: number;
  /** When the item was complete. While it streams, when it began. */
  readonly createdAt: IsoTime;
  /**
   * The id of the call that started the sub-agent from which this item comes. Present only if the item is not in that
   * call's `children`, because the call has not been seen, or is no longer remembered.
   */
  readonly parentToolCallId?: string;
}

export interface UserMessage extends Placed {
  readonly kind: "user";
  readonly text: string;
  readonly turn: number | undefined;
  /** The images of the message, in order, if it has any. `Client.promptImage` returns them. */
  readonly images?: readonly PromptImage[];
}

export interface AssistantMessage extends Placed {
  readonly kind: "assistant";
  readonly state: "streaming" | MessageOutcome;
  readonly parts: readonly Part[];
}

/** A tool call outside of a message: the agent reports its calls separately, or the message is not complete yet. */
export interface ToolMessage extends Placed {
  readonly kind: "tool";
  readonly call: ToolCall;
}

export interface ErrorMessage extends Placed {
  readonly kind: "error";
  readonly text: string;
  readonly error: AgentError | undefined;
}

/** The end of a turn. */
export interface ResultMessage extends Placed {
  readonly kind: "result";
  readonly outcome: TurnOutcome;
  /** The final text of the agent. Most agents repeat their last message here. */
  readonly text: string;
  /** Whether a message of the turn already has this text. */
  readonly isRepeated: boolean;
  readonly turn: number | undefined;
  readonly durationMs: number | undefined;
  readonly messageCount: number | undefined;
  readonly numTurns: number | undefined;
  readonly costUsd: number | undefined;
  readonly usage: unknown;
  readonly error: AgentError | undefined;
  /** What started the turn, if it was not a user. */
  readonly origin: string | undefined;
}

/** An answer that can be chosen. `kind` is `allow_once`, `allow_always`, `reject_once` or `reject_always`. */
export interface QuestionOption {
  readonly optionId: string;
  readonly name: string;
  readonly kind: string;
}

/** A permission request: the agent asks whether it may do something, and waits. */
export interface QuestionMessage extends Placed {
  readonly kind: "question";
  readonly requestId: string;
  readonly toolCallId: string | undefined;
  readonly toolName: string;
  /** The input that the tool would get. */
  readonly input: unknown;
  readonly options: readonly QuestionOption[];
  /** What the request accepts besides one option. */
  readonly accepts: AcceptedAnswers;
  /** When the request is settled if nobody answers. */
  readonly expiresAt: IsoTime | undefined;
  /** The option that is chosen then. If undefined, none is. */
  readonly defaultOptionId: string | undefined;
  /** `closed`: the turn ended without an answer. */
  readonly state: "open" | "resolved" | "closed";
  /** When it was answered, or when the turn ended without an answer. */
  readonly settledAt: IsoTime | undefined;
  /** The chosen option, if there is one. The first one, if there are several. */
  readonly optionId: string | undefined;
  /** All chosen options. */
  readonly optionIds: readonly string[];
  /** The answer in the user's own words, if there is one. */
  readonly text: string | undefined;
  /** What the user said to a rejection. */
  readonly note: string | undefined;
  /** Who settled the permission request: `user`, `timeout`, `cancel` or `agent`. */
  readonly by: string | undefined;
}

/** A notice: an event of the agent's own, such as `init` or `status`, or a `message_delta` with the token usage. */
export interface NoticeMessage extends Placed {
  readonly kind: "notice";
  readonly eventType: string;
  readonly data: unknown;
  readonly usage: unknown;
  readonly stopReason: string | undefined;
}

/** An item that is shown as a part of the conversation. */
export type Message = UserMessage | AssistantMessage | ToolMessage | QuestionMessage | ErrorMessage | ResultMessage;
export type Item = Message | NoticeMessage;

export interface TextPart {
  readonly type: "text";
  /** The index of the part in the message. */
  readonly index: number;
  readonly text: string;
}
/** The reasoning of the model. */
export interface ReasoningPart {
  readonly type: "reasoning";
  readonly index: number;
  readonly text: string;
}
export interface ToolPart {
  readonly type: "tool";
  readonly index: number;
  readonly call: ToolCall;
}
/** A block of any other type, exactly as the agent sent it. */
export interface OtherPart {
  readonly type: "other";
  readonly index: number;
  readonly value: unknown;
}
export type Part = TextPart | ReasoningPart | ToolPart | OtherPart;

/**
 * `preparing`: the agent is writing the input. `running`: the tool was called. `unanswered`: the turn ended without a
 * result.
 */
export type ToolState = "preparing" | "running" | "completed" | "failed" | "unanswered";

/** A tool call, with its result if there is one, and with all items of the sub-agent that it started. */
export interface ToolCall {
  readonly id: string;
  readonly name: string | undefined;
  readonly state: ToolState;
  /** The beginning of the input as JSON, while the agent writes it. */
  readonly inputText: string;
  /** The complete input. */
  readonly input: unknown;
  readonly result: unknown;
  /** What the call has changed in files, as a unified diff with paths and line numbers, if the agent reports it. */
  readonly patch: string | undefined;
  /** The event that reported the call, if there is one. Until then, the call is only a part of a message. */
  readonly event: Omit<Placed, "changed"> | undefined;
  readonly endedAt: IsoTime | undefined;
  /** The items of the sub-agent. */
  readonly children: readonly Item[];
}
