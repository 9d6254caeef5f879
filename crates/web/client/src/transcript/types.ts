// What a conversation is made of. Everything here is immutable: what has not changed is the same object as before.
import type { AgentError, IsoTime, MessageOutcome, TurnOutcome } from "../generated/wire.js";

interface Placed {
  /** Unique, and the same at each reading; of an assistant's message its `messageId`. */
  readonly id: string;
  /** Its place: the number of its first event. Each item has its own. */
  readonly sequence: number;
  /** The number of the newest event that has changed it, but for what is nested in it. */
  readonly changed: number;
  /** When it was complete; while it streams, when it began. */
  readonly createdAt: IsoTime;
  /** Said by the sub-agent that this call has started, which is not (or no longer) known. */
  readonly parentToolCallId?: string;
}

export interface UserMessage extends Placed {
  readonly kind: "user";
  readonly text: string;
  readonly turn: number | undefined;
}

export interface AssistantMessage extends Placed {
  readonly kind: "assistant";
  readonly state: "streaming" | MessageOutcome;
  readonly parts: readonly Part[];
}

/** A call that is in no message: of an agent that tells its calls by themselves, or before its message is complete. */
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
  /** The agent's final text. Of most agents it is their last message once more. */
  readonly text: string;
  /** A message of the turn has said this text already. */
  readonly isRepeated: boolean;
  readonly turn: number | undefined;
  readonly durationMs: number | undefined;
  readonly messageCount: number | undefined;
  readonly numTurns: number | undefined;
  readonly costUsd: number | undefined;
  readonly usage: unknown;
  readonly error: AgentError | undefined;
  /** Who began the turn, where it was not a user. */
  readonly origin: string | undefined;
}

/** One of the answers to a question; `kind` is `allow_once`, `allow_always`, `reject_once` or `reject_always`. */
export interface QuestionOption {
  readonly optionId: string;
  readonly name: string;
  readonly kind: string;
}

/** The agent asks whether it may do something, and waits. */
export interface QuestionMessage extends Placed {
  readonly kind: "question";
  readonly requestId: string;
  readonly toolCallId: string | undefined;
  readonly toolName: string;
  /** What the tool would be given. */
  readonly input: unknown;
  readonly options: readonly QuestionOption[];
  /** `closed`: its turn has ended without an answer. */
  readonly state: "open" | "resolved" | "closed";
  /** What was chosen, if anything was. */
  readonly optionId: string | undefined;
  /** Who has settled it: `user`, `timeout`, `cancel` or `agent`. */
  readonly by: string | undefined;
}

/** The agent's own word, as `init` or `status`; and `message_delta`, with the tokens that were used. */
export interface NoticeMessage extends Placed {
  readonly kind: "notice";
  readonly eventType: string;
  readonly data: unknown;
  readonly usage: unknown;
  readonly stopReason: string | undefined;
}

/** Something that is said in a conversation. */
export type Message = UserMessage | AssistantMessage | ToolMessage | QuestionMessage | ErrorMessage | ResultMessage;
export type Item = Message | NoticeMessage;

export interface TextPart {
  readonly type: "text";
  /** Its place in the message. */
  readonly index: number;
  readonly text: string;
}
/** What the agent thinks. */
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
/** A block that is none of the others, as the agent gave it. */
export interface OtherPart {
  readonly type: "other";
  readonly index: number;
  readonly value: unknown;
}
export type Part = TextPart | ReasoningPart | ToolPart | OtherPart;

/**
 * `preparing`: the agent is writing the input. `running`: it was called. `unanswered`: its turn has ended without a
 * result.
 */
export type ToolState = "preparing" | "running" | "completed" | "failed" | "unanswered";

/** A tool call, with its result where there is one, and with all that the sub-agent has said that it has started. */
export interface ToolCall {
  readonly id: string;
  readonly name: string | undefined;
  readonly state: ToolState;
  /** The input while it is being written: a beginning of JSON. */
  readonly inputText: string;
  /** The input, once it is complete. */
  readonly input: unknown;
  readonly result: unknown;
  /** The event that told the call, where one has; until then it is only part of a message. */
  readonly event: Omit<Placed, "changed"> | undefined;
  readonly endedAt: IsoTime | undefined;
  /** What the sub-agent has said. */
  readonly children: readonly Item[];
}
