// The frames of the WebSocket in the dialect `agent`. The payload types are generated; the names of the frames are
// here.
import type {
  AgentCreated,
  AgentDeleted,
  AgentDeltas,
  AgentMessage,
  AgentUpdated,
  ErrorFrame,
  Heads,
  StreamComplete,
  StreamError,
  StreamMessage,
  StreamStatus,
  Subscribed,
  Unsubscribed,
} from "./generated/wire.js";

/** One event of an agent's journal: its numbers are 1, 2, 3 … without gaps. */
export type AgentEvent = AgentMessage;

export interface Frame<Type extends string, Payload> {
  type: Type;
  payload: Payload;
  /** Milliseconds since the epoch. */
  timestamp: number;
}

export type PlainFrame =
  | Frame<"agent:message", StreamMessage>
  | Frame<"agent:deltas", AgentDeltas>
  | Frame<"agent:status", StreamStatus>
  | Frame<"agent:error", StreamError>
  | Frame<"agent:complete", StreamComplete>
  | Frame<"agent:created", AgentCreated>
  | Frame<"agent:updated", AgentUpdated>
  | Frame<"agent:deleted", AgentDeleted>
  | Frame<"subscribed", Subscribed>
  | Frame<"unsubscribed", Unsubscribed>
  | Frame<"heartbeat", Heads>
  | Frame<"pong", unknown>
  | Frame<"error", ErrorFrame>;

export type ServerFrame = PlainFrame | { type: "batch"; messages: PlainFrame[] };

/** The frames that the client sends. */
export type ClientFrame =
  | { type: "subscribe"; payload: { agentId: string; since: number } }
  | { type: "unsubscribe"; payload: { agentId: string } }
  | { type: "ping" };

/**
 * The lifecycle events of all agents ("news"). `reset` arrives when the connection is made, and whenever news may have
 * been missed: load the list of agents then.
 */
export type AgentNews =
  | { type: "reset" }
  | ({ type: "created" } & AgentCreated)
  | ({ type: "updated" } & AgentUpdated)
  | ({ type: "deleted" } & AgentDeleted);

/** The frames in a message of the socket. Unreadable messages, and frames without a type or payload, are ignored. */
export function readFrames(text: unknown): PlainFrame[] {
  if (typeof text !== "string") return [];
  let frame: ServerFrame;
  try {
    frame = JSON.parse(text) as ServerFrame;
  } catch {
    return [];
  }
  if (typeof frame !== "object" || frame === null) return [];
  const frames = frame.type === "batch" ? frame.messages : [frame];
  return frames.filter((each) => typeof each?.type === "string" && typeof each.payload === "object");
}
