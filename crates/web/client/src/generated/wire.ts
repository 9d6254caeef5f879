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

/** The class of an error, which says what can be done about it. */
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
  | "node_alive"
  | "changes_unavailable"
  | "already_resolved"
  | "turn_started"
  | "queue_full"
  | "news_lagged"
  | "payload_too_large"
  | "unsupported_media_type"
  | "content_encoding_refused"
  | "host_not_allowed"
  | "validation_failed"
  | "cwd_not_allowed"
  | "images_not_accepted"
  | "runner_unknown"
  | "node_unknown"
  | "dialect_unknown"
  | "idempotency_mismatch"
  | "upgrade_required"
  | "rate_limited"
  | "headers_too_large"
  | "store_failed"
  | "capacity_exhausted"
  | "node_unavailable"
  | "shutting_down"
  | "store_busy"
  | "outcome_unknown"
  | "storage_full";

/** An id: 36 characters, hyphenated lower-case hexadecimal. */
export type Id = string;

/** A time: ISO 8601, UTC, with milliseconds. */
export type IsoTime = string;

/**
 * JSON from an agent or a client, unchanged. JSON that common parsers cannot read is a string that contains it, so
 * that a client can still read the values around it.
 */
export type Json = unknown;

/** The error of an agent. */
export type AgentError = {
  /**
   * `rate_limit`, `overloaded`, `authentication`, `invalid_request`, `network`, `timeout`, `process`, `protocol`
   * or `unknown`.
   */
  class: ErrorClass;
  /** Tokenrail's own error code; absent if the agent reported the error. */
  code?: string;
  /** The error message; in an error event, it is also the `content`. */
  message?: string;
  /** Seconds. */
  retryAfter?: number;
  /** Whether the same prompt may succeed later. */
  recoverable: boolean;
};

/** The agent that accepted a command. */
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
  /** A JSON pointer into the body. */
  pointer?: string;
  /** The name of a query parameter or header. */
  parameter?: string;
  detail: string;
};

/** Whether a node answers. */
export type NodeState =
  | "alive"
  | "away"
  | "lost"
  | "gone";

/** A server that uses the database. */
export type ServerNode = {
  id: number;
  /** A label for people. Several nodes can have the same one. */
  name: string;
  /** `alive`; `away`: stopped, and expected back; `lost`: silent for too long; or `gone`: removed. */
  state: NodeState;
  /** The version of its program. */
  version: string;
  /** Whether this is the server that sent the response. */
  self: boolean;
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
  /** How many permission requests of the agent are open: it waits for their answers. */
  openQuestions: number;
  /** When the oldest of them was sent. */
  waitingSince?: IsoTime;
  /** The prompt of the first turn; in a list, its beginning. */
  prompt: string;
  model?: string;
  cwd: string;
  /** The agent program's own conversation id. */
  sessionId?: string;
  /** The name of the node that has the agent's folder and runs its turns. Absent if the database is not shared. */
  node?: string;
  /** `away`, `lost` or `gone`; absent if the node is alive. If `lost` or `gone`, the agent accepts no messages. */
  nodeState?: Exclude<NodeState, "alive">;
  /** The newest turn that has started. */
  turn: number;
  /** How many turns are queued. */
  queued: number;
  /** The number of the newest event. */
  head: number;
  createdAt: IsoTime;
  updatedAt: IsoTime;
  endedAt?: IsoTime;
  deletedAt?: IsoTime;
  /** Whether it is pinned: the page shows it before the other agents. */
  pinned: boolean;
  /** Whether it is archived: lists leave it out. It is unarchived if it gets a message or asks for permission. */
  archived: boolean;
  /** Why the newest turn failed. */
  error?: AgentError;
  /** Token usage of the newest turn, as the agent gave it. */
  usage?: Json;
  /** US dollars. */
  costUsd?: number;
  /** The metadata of the launch, as the client sent it. */
  metadata?: Json;
  /** The options of the launch. */
  options?: Json;
  cancelOnDisconnect: boolean;
  /** `true` if the agent is imported or a replay: it accepts no messages. */
  readOnly?: boolean;
  /** The agent whose history it replays. */
  replayOf?: Id;
  /** The agent that launched this one, if an agent did. */
  launchedBy?: Id;
  /** The depth of that launch: 1 if the parent was not launched by an agent. */
  launchDepth?: number;
  /**
   * In a list: the fields that are longer than `limits.list_field_bytes`. `name`, `prompt`, `model`, `cwd` and the
   * `message` of `error` are cut; other fields are left out. `GET /api/agents/{id}` returns all of them.
   */
  truncated?: Array<string>;
};

/** An agent and its status. */
export type AgentState = {
  agentId: Id;
  status: AgentStatus;
};

/** A message that became a turn. */
export type Accepted = {
  turn: number;
  /** How many turns are queued, including this one. */
  queued: number;
};

/** What agents of a type can do in addition to what all agents can do. */
export type Abilities = {
  /** They stream their text in pieces. */
  deltas: boolean;
  /** They remember earlier turns. */
  resume: boolean;
  /** When cancelled, they end their turn by themselves, with a result. */
  interrupt: boolean;
  /** They ask for permission before they do something that is not allowed yet, and wait for the answer. */
  permissions: boolean;
  /** They accept images with a prompt. */
  images: boolean;
};

/** The limits for the images of a prompt. */
export type ImageLimits = {
  /** How many images a prompt can have: `limits.prompt_images`. */
  images: number;
  /** How many bytes each file can have: `limits.image_bytes`. */
  bytes: number;
  /** How many bytes all files of a prompt can have together: `limits.prompt_image_bytes`. */
  totalBytes: number;
};

/** A configured agent type and its current state. */
export type AgentType = {
  type: string;
  runner: string;
  format: string;
  can: Abilities;
  /** The limits for the images of a prompt. Absent if agents of this type accept none. */
  imageLimits?: ImageLimits;
  /** Whether a launch that names no type uses this one. */
  default: boolean;
  /** Whether an agent of this type can be started now. */
  available: boolean;
  program?: string;
  version?: string;
  /** Why the type is not available. */
  problem?: string;
  /**
   * Variables that can hold an API key for this type, if none of them is set: the program then needs a login of its
   * own.
   */
  unsetKeys?: Array<string>;
};

/** A ticket for a browser's WebSocket or `EventSource`. */
export type Ticket = {
  ticket: string;
  expiresAt: IsoTime;
};

/** The process of the server. */
export type ServerProcess = {
  /** The id of the process. Absent if the client is on another machine, where it means nothing. */
  pid?: number;
};

/** One event of a journal. */
export type AgentMessage = {
  /** Unique. The id of a complete message is its `messageId`. */
  id: Id;
  agentId: Id;
  /** The number of the event in the journal: 1, 2, 3 … without gaps. */
  sequenceNumber: number;
  /** For a complete message: the number of its first delta, if it had one. */
  firstSequence?: number;
  /** `assistant`, `user`, `system`, `error`, `tool` or `response`. */
  type: "assistant" | "user" | "system" | "error" | "tool" | "response";
  role?: "assistant" | "user" | "system" | "tool";
  content: Content;
  /** The lines that the agent printed, joined by `\n`; only with `raw=true`. */
  raw?: string;
  metadata: AgentMessageMetadata;
  createdAt: IsoTime;
};

/** An image of a prompt, without its data. */
export type PromptImage = {
  /** `image/png`, `image/jpeg`, `image/gif` or `image/webp`. */
  mediaType: string;
  /** The size of the image. */
  bytes: number;
};

/** Further properties of an event. A field that does not apply is absent. */
export type AgentMessageMetadata = {
  eventType: string;
  messageId?: Id;
  /** The index of the block in its message. */
  part?: number;
  outcome?: MessageOutcome | TurnOutcome;
  toolCallId?: string;
  toolName?: string;
  parentToolCallId?: string;
  isError?: boolean;
  /** What a tool call changed in files: a unified diff with the paths of the files and the numbers of the lines. */
  patch?: string;
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
  /** In the record of a turn: the id of the parent message. */
  parentId?: Id;
  /** Who started the turn, if it was not a user. */
  origin?: string;
  /** The images of a user message, in order. `GET /api/agents/{id}/turns/{n}/images/{k}` returns them. */
  images?: Array<PromptImage>;
};

/** What an event says: text, blocks, or JSON as the agent gave it. */
export type Content = string | ContentBlock | Array<ContentBlock> | Json;

/** One block of a message that does not consist of text only. */
export type ContentBlock = { "type": "text", text: string, } | { "type": "reasoning", text: string, } | { "type": "tool_use", id: string, name: string, input: Json, } | Json;

/** With `packed=true`: consecutive deltas of one part of one message, as `to - from + 1` texts. */
export type AgentDeltas = {
  agentId: Id;
  messageId: Id;
  /** The index of the block in its message. */
  part: number;
  /** `content_delta`, `thinking_delta` or `tool_input_delta`. */
  eventType: "content_delta" | "thinking_delta" | "tool_input_delta";
  toolCallId?: string;
  /** The tool name, if the first delta has one. */
  toolName?: string;
  /** The number of the first delta. */
  from: number;
  /** The number of the last delta. */
  to: number;
  /** The time of the first delta. */
  createdAt: IsoTime;
  /** For each delta, the milliseconds since the one before it, 0 for the first; absent if all have the same time. */
  elapsedMs?: number[];
  /** What each delta says, one after the other. */
  texts: string[];
};

/** One prompt and everything up to the agent's result. */
export type Turn = {
  agentId: Id;
  number: number;
  /**
   * The number of this turn. If the agent started this turn by itself: the number of the requested turn during whose
   * run it started.
   */
  run: number;
  /** `queued`, `running`, or its outcome. A withdrawn turn is `cancelled` immediately. */
  status: "queued" | "running" | TurnOutcome;
  /** `completed`, `failed`, `cancelled` or `interrupted`, once it has ended. */
  outcome?: TurnOutcome;
  /** The prompt. In a list, only its beginning if it is long: see `truncated`. */
  prompt: string;
  /** The images of the prompt, in order. */
  images?: Array<PromptImage>;
  askedAt: IsoTime;
  /** The number of its first event, once it has started. */
  firstSequence?: number;
  /** The number of its result, once it has ended. */
  lastSequence?: number;
  /** In a list: `["prompt"]` if the prompt is cut; `GET /api/agents/{id}/turns/{n}` returns all of it. */
  truncated?: Array<string>;
};

/** The record of a turn. */
export type TurnRecord = {
  sessionId?: string;
  agentType: string;
  agentResult?: AgentResult;
  /** All events that are not deltas, each with its `metadata.parentId`. */
  messages: AgentMessage[];
  /** The lines as printed: JSON as it is, other text as a string, bytes that are not UTF-8 as `{"hex": …}`. */
  rawAgentMessages: Json[];
  /** The turn as the AI SDK's UI message chunks. */
  aiSDKChunks: Json[];
  agentId: Id;
  number: number;
  /**
   * The number of this turn. If the agent started this turn by itself: the number of the requested turn during whose
   * run it started.
   */
  run: number;
  /** `queued`, `running`, or its outcome. A withdrawn turn is `cancelled` immediately. */
  status: "queued" | "running" | TurnOutcome;
  /** `completed`, `failed`, `cancelled` or `interrupted`, once it has ended. */
  outcome?: TurnOutcome;
  /** The prompt. In a list, only its beginning if it is long: see `truncated`. */
  prompt: string;
  /** The images of the prompt, in order. */
  images?: Array<PromptImage>;
  askedAt: IsoTime;
  /** The number of its first event, once it has started. */
  firstSequence?: number;
  /** The number of its result, once it has ended. */
  lastSequence?: number;
  /** In a list: `["prompt"]` if the prompt is cut; `GET /api/agents/{id}/turns/{n}` returns all of it. */
  truncated?: Array<string>;
};

/** The result of the turn. */
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

/** A file that differs from the commit. */
export type ChangedFile = {
  /** The path below the root of the repository. */
  path: string;
  /** The path from which the file was renamed. */
  oldPath?: string;
  /** `added`, `modified`, `deleted`, `renamed`, or `untracked`: new, and not known to git. */
  status: "added" | "modified" | "deleted" | "renamed" | "untracked";
  /** The number of added lines. Absent if the file is binary or too large to be counted. */
  added?: number;
  /** The number of removed lines. */
  removed?: number;
  /** Whether the file is binary. */
  binary: boolean;
};

/** Why git cannot tell what has changed. */
export type NoChangesReason =
  | "copy"
  | "no_commit"
  | "no_repository"
  | "commit_gone"
  | "other_node"
  | "no_git"
  | "timed_out"
  | "git_failed";

/** Git has compared the files with a commit. What others have changed is included. */
export type GitChanges = {
  /** The turn at whose start HEAD pointed to the commit. */
  turn: number;
  /** The commit, or the id of the empty tree if there was none. */
  base: string;
  files: Array<ChangedFile>;
  /** Whether there are more files than `limits.changes_files`. */
  truncated: boolean;
};

/** Git cannot tell what has changed. The agent's own tool calls may show it. */
export type NoChanges = {
  /** `copy`, `no_commit`, `no_repository`, `commit_gone`, `other_node`, `no_git`, `timed_out` or `git_failed`. */
  reason: NoChangesReason;
  /** The reason as a sentence. */
  detail: string;
};

/** What has changed in the git repository of an agent's folder since a turn started, or why git cannot tell. */
export type Changes = {
  "source": "git"
} & GitChanges | {
  "source": "none"
} & NoChanges;

/** The state of a permission request after an answer. */
export type PermissionState = {
  requestId: string;
  /** `pending` if the agent has not accepted the answer yet; its events will show the outcome. */
  state: "selected" | "cancelled" | "pending";
  optionId?: string;
  /** All options of the answer, if there are several. */
  optionIds?: Array<string>;
  text?: string;
  note?: string;
};

/** The answer to a permission request: one option, something else that the request accepts, or `cancelled`. */
export type PermissionAnswer = {
  /** The id of one of the request's options. */
  optionId?: string;
  /** Several options of the kind `allow_once`, if the request accepts `several`. */
  optionIds?: Array<string>;
  /**
   * An answer in the user's own words, if the request accepts `text`. If it also accepts `several`, options can be
   * sent with it.
   */
  text?: string;
  /** A note to the agent, with an option that rejects, if the request accepts `note`. */
  note?: string;
  /** `true`: choose none of the options. */
  cancelled?: boolean;
};

/** One of the answers to a permission request. */
export type OfferedOption = {
  optionId: string;
  /** The label that a user reads. */
  name: string;
  /** `allow_once`, `allow_always`, `reject_once` or `reject_always`. */
  kind: string;
};

/** What a permission request accepts besides one option. Fields that are not accepted are absent. */
export type AcceptedAnswers = {
  /** A note to the agent, with an option that rejects. */
  note?: boolean;
  /** Text in the user's own words, instead of an option. */
  text?: boolean;
  /** Several options of the kind `allow_once`; if `text` is also accepted, text can be sent with them. */
  several?: boolean;
};

/** An open permission request: an agent asks whether it may do something, and waits. */
export type OpenQuestion = {
  agentId: Id;
  requestId: string;
  /** The tool call that the request is about. */
  toolCallId?: string;
  toolName: string;
  /**
   * The input that the tool would get. Left out if it is longer than `limits.list_field_bytes`: the event
   * `permission_request` has all of it.
   */
  input?: Json;
  options: Array<OfferedOption>;
  askedAt: IsoTime;
  /** When the request is settled if nobody answers it. */
  expiresAt?: IsoTime;
  /** The option that is chosen then. Absent if none is chosen. */
  defaultOptionId?: string;
  /** What the request accepts besides one option. Absent if nothing. */
  accepts?: AcceptedAnswers;
};

/** An image of a prompt. */
export type NewImage = {
  /** Not used: the server recognises the type of an image by its first bytes. */
  mediaType?: string;
  /** A PNG, JPEG, GIF or WebP file in base64. */
  data: string;
};

/** The body of a launch. */
export type Launch = {
  /** The agent type; without it the configured default. */
  type?: string;
  prompt: string;
  /**
   * The images of the prompt: at most `limits.prompt_images` of them, with at most `limits.prompt_image_bytes` bytes
   * in total. Only if the agent type has `can.images`.
   */
  images?: NewImage[];
  model?: string;
  /**
   * The working directory. It must be inside one of the type's `cwd_roots` or inside an allowed folder. Default: a
   * new folder for this agent.
   */
  cwd?: string;
  /**
   * The name or the id of the server that runs the agent, if several servers share one database. It cannot be
   * combined with `cwd` or `sessionId`, unless it is the server that receives the request.
   */
  node?: string;
  /** A session of the agent program to resume. */
  sessionId?: string;
  name?: string;
  metadata?: Record<string, unknown>;
  options?: Record<string, unknown>;
  /** Cancel the agent when its last follower leaves. */
  cancelOnDisconnect?: boolean;
};

/** The body of a change of an agent, as a JSON merge patch: fields that are absent stay as they are. */
export type AgentEdit = {
  /** `null` removes the name. */
  name?: string | null;
  /** Whether the agent is pinned: the page shows it before the others. */
  pinned?: boolean;
  /** Whether lists leave the agent out. */
  archived?: boolean;
};

/** The body of a message to an agent. */
export type NewMessage = {
  content: string;
  /** The images of the message, as in a launch. */
  images?: NewImage[];
};

/** The body of a replay; it may be left out. */
export type ReplayRequest = {
  /** 1 is the original speed, 2 is twice as fast, 0 is as fast as possible. */
  speed?: number;
};

/** The body of a request for a ticket; it may be left out. */
export type TicketRequest = {
  /** The only path for which the ticket is valid: `/ws`, `/api/chat` or an agent's `/events`. */
  path?: string;
};

/** The file of an exported agent. */
export type Archive = {
  /** The version of the file format: 1. */
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
  /** The error message. */
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
  /** How many permission requests of the agent are open. */
  openQuestions: number;
  /** When the oldest of them was sent. */
  waitingSince?: IsoTime;
  /** `true` if the agent's name, `pinned` or `archived` may have changed. */
  edited?: boolean;
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

/** `error`: a problem with a frame of the client or with a subscription. */
export type ErrorFrame = {
  code: ProblemCode;
  message: string;
  retryable: boolean;
  agentId?: Id;
  /** The id of the permission request that this connection answered. */
  requestId?: string;
  head?: number;
};
