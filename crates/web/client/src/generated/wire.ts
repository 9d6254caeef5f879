// Generated from the server's types; do not edit. To regenerate:
// TOKENRAIL_WRITE_TYPES=1 cargo test --workspace --lib typescript

/** What an agent is doing. */
export type AgentStatus =
  | "initializing"
  | "running"
  | "completed"
  | "failed"
  | "cancelled"
  | "interrupted";

/** How a turn ended. */
export type TurnOutcome =
  | "completed"
  | "failed"
  | "cancelled"
  | "interrupted";

/** How a message ended. */
export type MessageOutcome =
  | "complete"
  | "failed"
  | "cancelled"
  | "interrupted";

/** The kind of error, by what can be done about it. */
export type ErrorClass =
  | "rate_limit"
  | "overloaded"
  | "authentication"
  | "invalid_request"
  | "network"
  | "timeout"
  | "process"
  | "protocol"
  | "unknown";

/** Why a request was refused. */
export type ProblemCode =
  | "bad_request"
  | "malformed_json"
  | "cursor_malformed"
  | "unauthenticated"
  | "origin_not_allowed"
  | "not_found"
  | "method_not_allowed"
  | "not_acceptable"
  | "request_timeout"
  | "cursor_ahead"
  | "agent_deleted"
  | "agent_read_only"
  | "agent_active"
  | "already_resolved"
  | "queue_full"
  | "payload_too_large"
  | "unsupported_media_type"
  | "news_lagged"
  | "content_encoding_refused"
  | "host_not_allowed"
  | "validation_failed"
  | "cwd_not_allowed"
  | "runner_unknown"
  | "dialect_unknown"
  | "idempotency_mismatch"
  | "upgrade_required"
  | "rate_limited"
  | "headers_too_large"
  | "store_failed"
  | "capacity_exhausted"
  | "shutting_down"
  | "store_busy"
  | "outcome_unknown"
  | "storage_full";

/** An id: 36 characters, hyphenated lower-case hexadecimal. */
export type Id = string;

/** A time: ISO 8601, UTC, with milliseconds. */
export type IsoTime = string;

/**
 * Foreign JSON, embedded as it came; what common readers of JSON cannot read, as a string that holds it: one such
 * value must not keep a client from all that stands around it.
 */
export type Json = unknown;

/** What went wrong with an agent. */
export type AgentError = {
  /**
   * `rate_limit`, `overloaded`, `authentication`, `invalid_request`, `network`, `timeout`, `process`, `protocol`
   * or `unknown`.
   */
  class: ErrorClass;
  /** Tokenrail's own code, where the error is not the agent's. */
  code?: string;
  /** The sentence; of an error event it is the content. */
  message?: string;
  /** Seconds. */
  retryAfter?: number;
  /** Whether the same prompt may succeed later. */
  recoverable: boolean;
};

/** The agent that a command was taken for. */
export type AgentRef = {
  agentId: Id;
};

/** A problem as `application/problem+json`. */
export type Problem = {
  /** `/problems/<code>`. */
  type: string;
  title: string;
  status: number;
  detail: string;
  code: ProblemCode;
  requestId: string;
  /** Whether the same request may succeed later. */
  retryable: boolean;
  errors?: Array<FieldProblem>;
  head?: number;
};

/** What is wrong with one part of a request. */
export type FieldProblem = {
  /** Into the body: a JSON pointer. */
  pointer?: string;
  /** A query parameter or a header. */
  parameter?: string;
  detail: string;
};

/** One conversation with one agent program. */
export type Agent = {
  id: Id;
  /** The same as `id`. */
  agentId: Id;
  /** The configured agent type. */
  type: string;
  name?: string;
  /** The client's own id of this conversation. */
  chatId?: string;
  /** `initializing`, `running`, `completed`, `failed`, `cancelled` or `interrupted`. */
  status: AgentStatus;
  /** The prompt of the first turn; in a list, its beginning. */
  prompt: string;
  model?: string;
  cwd: string;
  /** The agent program's own conversation id. */
  sessionId?: string;
  /** The newest turn that has started. */
  turn: number;
  /** How many turns wait. */
  queued: number;
  /** The number of the newest event. */
  head: number;
  createdAt: IsoTime;
  updatedAt: IsoTime;
  endedAt?: IsoTime;
  deletedAt?: IsoTime;
  /** Why the newest turn failed. */
  error?: AgentError;
  /** Token usage of the newest turn, as the agent gave it. */
  usage?: Json;
  /** US dollars. */
  costUsd?: number;
  /** The client's own notes, as they came with the launch. */
  metadata?: Json;
  /** The options of the launch. */
  options?: Json;
  cancelOnDisconnect: boolean;
  /** `true` where its history is a copy: nobody can talk with it. */
  readOnly?: boolean;
  /** The agent whose history it replays. */
  replayOf?: Id;
  /**
   * In a list: the fields that are longer than the server shows there. Of `name`, `prompt`, `model`, `cwd` and
   * `error` (its `message`) the beginning is there, the others are left out; `GET /api/agents/{id}` has all of them.
   */
  truncated?: Array<string>;
};

/** An agent and the state that it is in. */
export type AgentState = {
  agentId: Id;
  status: AgentStatus;
};

/** A message that became a turn. */
export type Accepted = {
  turn: number;
  /** How many turns wait, this one included. */
  queued: number;
};

/** What agents of a type can do, beyond what all can. */
export type Abilities = {
  /** They speak in pieces, and not in whole messages. */
  deltas: boolean;
  /** A later turn knows of the earlier ones. */
  resume: boolean;
  /** When cancelled, they end their turn by themselves, with a result. */
  interrupt: boolean;
  /** They ask before they do what they may not do without being allowed, and wait for the answer. */
  permissions: boolean;
};

/** One configured agent type, as it stands. */
export type AgentType = {
  type: string;
  runner: string;
  format: string;
  can: Abilities;
  /** It is launched where a launch names no type. */
  default: boolean;
  /** Whether it could be started now. */
  available: boolean;
  program?: string;
  version?: string;
  /** What is missing. */
  problem?: string;
  /** Variables that would hold a key for it, and that are not set in the server's environment: it needs a login of its own. */
  unsetKeys?: Array<string>;
};

/** A ticket for a browser's WebSocket or `EventSource`. */
export type Ticket = {
  ticket: string;
  expiresAt: IsoTime;
};

/** One event of a journal. */
export type AgentMessage = {
  /** Unique per row; of a complete message, its `messageId`. */
  id: Id;
  agentId: Id;
  /** 1, 2, 3 … without a hole. */
  sequenceNumber: number;
  /** Of a complete message: the number of its first delta, where it had one. */
  firstSequence?: number;
  /** `assistant`, `user`, `system`, `error`, `tool` or `response`. */
  type: "assistant" | "user" | "system" | "error" | "tool" | "response";
  role?: "assistant" | "user" | "system" | "tool";
  content: Content;
  /** The lines as printed, joined by `\n`; only where asked for. */
  raw?: string;
  metadata: AgentMessageMetadata;
  createdAt: IsoTime;
};

/** What else there is to know of an event; each field only where it applies. */
export type AgentMessageMetadata = {
  eventType: string;
  messageId?: Id;
  /** The place of the block in its message. */
  part?: number;
  outcome?: MessageOutcome | TurnOutcome;
  toolCallId?: string;
  toolName?: string;
  parentToolCallId?: string;
  isError?: boolean;
  stopReason?: string;
  usage?: Json;
  /** A notice's data, as the agent gave it. */
  data?: Json;
  error?: AgentError;
  turn?: number;
  durationMs?: number;
  numTurns?: number;
  costUsd?: number;
  messageCount?: number;
  /** In the record of a turn: the message on which this one hangs. */
  parentId?: Id;
  /** Who began the turn, where it was not a user. */
  origin?: string;
};

/** What an event says: text, blocks, or JSON as the agent gave it. */
export type Content = string | ContentBlock | Array<ContentBlock> | Json;

/** One block of a message that is more than text. */
export type ContentBlock = { "type": "text", text: string, } | { "type": "reasoning", text: string, } | { "type": "tool_use", id: string, name: string, input: Json, } | Json;

/** Consecutive deltas of one part of one message, where deltas are packed: `to - from + 1` texts. */
export type AgentDeltas = {
  agentId: Id;
  messageId: Id;
  /** The place of the block in its message. */
  part: number;
  /** `content_delta`, `thinking_delta` or `tool_input_delta`. */
  eventType: "content_delta" | "thinking_delta" | "tool_input_delta";
  toolCallId?: string;
  /** Of the first delta, where that has it. */
  toolName?: string;
  /** The number of the first delta. */
  from: number;
  /** The number of the last delta. */
  to: number;
  /** The time of the first delta. */
  createdAt: IsoTime;
  /** For each delta, the milliseconds since the one before it, 0 for the first; absent where all have the same time. */
  elapsedMs?: number[];
  /** What each delta says, one after the other. */
  texts: string[];
};

/** One prompt and all that followed. */
export type Turn = {
  agentId: Id;
  number: number;
  /** The turn that started the process in which this one ran: itself, unless the agent began it by itself. */
  run: number;
  /** `queued`, `running`, or its outcome. */
  status: "queued" | "running" | TurnOutcome;
  /** `completed`, `failed`, `cancelled` or `interrupted`, once it has ended. */
  outcome?: TurnOutcome;
  /** In a list, its beginning. */
  prompt: string;
  askedAt: IsoTime;
  /** The number of its first event, once it has started. */
  firstSequence?: number;
  /** The number of its result, once it has ended. */
  lastSequence?: number;
  /** In a list: `["prompt"]` where only its beginning is there; `GET /api/agents/{id}/turns/{n}` has all of it. */
  truncated?: Array<string>;
};

/** The record of a turn, for the OpenAPI document; it is written piece by piece. */
export type TurnRecord = {
  sessionId?: string;
  agentType: string;
  agentResult?: AgentResult;
  /** Whatever is no delta, each with its `metadata.parentId`. */
  messages: AgentMessage[];
  /** The lines as printed: JSON as it is, other text as a string, bytes that are no UTF-8 as `{"hex": …}`. */
  rawAgentMessages: Json[];
  /** The turn as the AI SDK's UI message chunks. */
  aiSDKChunks: Json[];
  agentId: Id;
  number: number;
  /** The turn that started the process in which this one ran: itself, unless the agent began it by itself. */
  run: number;
  /** `queued`, `running`, or its outcome. */
  status: "queued" | "running" | TurnOutcome;
  /** `completed`, `failed`, `cancelled` or `interrupted`, once it has ended. */
  outcome?: TurnOutcome;
  /** In a list, its beginning. */
  prompt: string;
  askedAt: IsoTime;
  /** The number of its first event, once it has started. */
  firstSequence?: number;
  /** The number of its result, once it has ended. */
  lastSequence?: number;
  /** In a list: `["prompt"]` where only its beginning is there; `GET /api/agents/{id}/turns/{n}` has all of it. */
  truncated?: Array<string>;
};

/** What the agent gave at the end of its turn. */
export type AgentResult = {
  agentType: string;
  turn: number;
  outcome: TurnOutcome;
  text: string;
  durationMs: number;
  messageCount: number;
  numTurns?: number;
  costUsd?: number;
  usage?: Json;
  error?: AgentError;
  origin?: string;
};

/** What came of an answer. */
export type PermissionState = {
  requestId: string;
  /** `pending` where the agent has not taken the answer yet: its events will tell. */
  state: "selected" | "cancelled" | "pending";
  optionId?: string;
};

/** The body of an answer to a question of an agent: one of the two. */
export type PermissionAnswer = {
  /** One of the options of the question. */
  optionId?: string;
  /** None of them is chosen. */
  cancelled?: boolean;
};

/** The body of a launch. */
export type Launch = {
  /** The agent type; without it the configured default. */
  type?: string;
  prompt: string;
  model?: string;
  /** The folder to work in; inside one of the configured roots. */
  cwd?: string;
  /** A session of the agent program to resume. */
  sessionId?: string;
  name?: string;
  metadata?: Record<string, unknown>;
  options?: Record<string, unknown>;
  /** Cancel the agent when its last follower leaves. */
  cancelOnDisconnect?: boolean;
};

/** The body of a message to an agent. */
export type NewMessage = {
  content: string;
};

/** The body of a replay; it may be left out. */
export type ReplayRequest = {
  /** 1 is as it was, 2 twice as fast; 0 is as fast as it goes. */
  speed?: number;
};

/** The body of a request for a ticket; it may be left out. */
export type TicketRequest = {
  /** The only path that the ticket opens: `/ws`, or an agent's events. */
  path?: string;
};

/** The file of an exported agent. */
export type Archive = {
  /** The version of the file's form: 1. */
  tokenrail: 1;
  agent: Json;
  turns: Json[];
  events: Json[];
};

/** `agent:message`. */
export type StreamMessage = {
  agentId: Id;
  sequence: number;
  message: AgentMessage;
  timestamp: IsoTime;
};

/** `agent:status`. */
export type StreamStatus = {
  agentId: Id;
  sequence: number;
  status: AgentStatus;
  timestamp: IsoTime;
};

/** `agent:error`. */
export type StreamError = {
  agentId: Id;
  sequence: number;
  /** The sentence. */
  error: string;
  class: ErrorClass;
  code?: string;
  /** Seconds. */
  retryAfter?: number;
  recoverable: boolean;
  timestamp: IsoTime;
};

/** `agent:complete`. */
export type StreamComplete = {
  agentId: Id;
  sequence: number;
  result: TurnResult;
  timestamp: IsoTime;
};

/** How a turn ended. */
export type TurnResult = {
  status: TurnOutcome;
  /** Milliseconds. */
  duration: number;
  messageCount: number;
  turn: number;
  text: string;
  numTurns?: number;
  costUsd?: number;
  usage?: Json;
  error?: AgentError;
  origin?: string;
};

/** `agent:created`. */
export type AgentCreated = {
  agent: Agent;
  timestamp: IsoTime;
};

/** `agent:updated`. */
export type AgentUpdated = {
  agentId: Id;
  status: AgentStatus;
  timestamp: IsoTime;
};

/** `agent:deleted`. */
export type AgentDeleted = {
  agentId: Id;
  timestamp: IsoTime;
};

/** `subscribed`. */
export type Subscribed = {
  agentId: Id;
  /** The newest event. */
  head: number;
  status: AgentStatus;
};

/** `unsubscribed`. */
export type Unsubscribed = {
  agentId: Id;
};

/** `heartbeat`: for each agent that is followed, the number up to which its events have been sent. */
export type Heads = {
  heads: Record<Id, number>;
};

/** `error`: a problem with what the client has asked for, or with a subscription. */
export type ErrorFrame = {
  code: ProblemCode;
  message: string;
  retryable: boolean;
  agentId?: Id;
  /** The question to which the connection has given an answer. */
  requestId?: string;
  head?: number;
};
