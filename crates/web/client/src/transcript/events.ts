// Applies each kind of event to a transcript.
import type { AgentEvent } from "../frames.js";
import type { MessageOutcome, TurnOutcome } from "../generated/wire.js";
import { type Draft, callsOf } from "./draft.js";
import type { AssistantMessage, Item, Part, QuestionMessage, ToolCall } from "./types.js";

export function apply(draft: Draft, event: AgentEvent): void {
  // An agent may give a notice of its own the name of one of our event types. Only such a notice has data.
  if (event.metadata.data !== undefined) return notice(draft, event);
  switch (event.metadata.eventType) {
    case "content_delta":
    case "thinking_delta":
    case "tool_input_delta":
      return delta(draft, event);
    case "message":
      return complete(draft, event);
    case "abandoned":
      return abandon(draft, event.metadata.messageId);
    case "tool_use":
      return toolUse(draft, event);
    case "tool_result":
      return toolResult(draft, event);
    case "user_message":
      return draft.insert({
        kind: "user",
        ...placed(event),
        text: plain(event.content),
        turn: event.metadata.turn,
        ...(event.metadata.images && { images: event.metadata.images }),
      });
    case "error":
      return draft.insert({ kind: "error", ...placed(event), text: plain(event.content), error: event.metadata.error });
    case "result":
      return result(draft, event);
    case "permission_request":
      return asked(draft, event);
    case "permission_resolved":
      return settled(draft, event);
    default:
      return notice(draft, event);
  }
}

function notice(draft: Draft, event: AgentEvent): void {
  const { eventType, data, usage, stopReason } = event.metadata;
  draft.insert({ kind: "notice", ...placed(event), eventType, data, usage, stopReason });
}

function placed(event: AgentEvent) {
  const { parentToolCallId } = event.metadata;
  const place = { id: event.id, sequence: event.sequenceNumber, changed: event.sequenceNumber, createdAt: event.createdAt };
  return parentToolCallId === undefined ? place : { ...place, parentToolCallId };
}

function plain(content: unknown): string {
  return typeof content === "string" ? content : JSON.stringify(content);
}

function delta(draft: Draft, event: AgentEvent): void {
  const { messageId } = event.metadata;
  if (messageId === undefined) return;
  const known = draft.find(messageId);
  if (!known) {
    const place = { ...placed(event), id: messageId };
    draft.insert({ kind: "assistant", ...place, state: "streaming", parts: [] });
  } else if (known.kind !== "assistant" || known.state !== "streaming") {
    return;
  }
  draft.changeMessage(messageId, (message) => ({
    ...message,
    changed: event.sequenceNumber,
    parts: withDelta(message.parts, event),
  }));
  const { toolCallId } = event.metadata;
  if (toolCallId !== undefined && isFree(draft, toolCallId)) draft.own(toolCallId, messageId);
}

/** Whether no open call has this id. An agent may use the id of an ended call again. */
function isFree(draft: Draft, callId: string): boolean {
  const state = draft.call(callId)?.state;
  return state !== "preparing" && state !== "running";
}

function withDelta(parts: readonly Part[], event: AgentEvent): Part[] {
  const index = event.metadata.part ?? 0;
  const next = [...parts];
  // The part that grows is nearly always the newest one.
  let at = next.length;
  while (at > 0 && (next[at - 1] as Part).index >= index) at -= 1;
  const known = next[at]?.index === index ? next[at] : undefined;
  next.splice(at, known ? 1 : 0, grown(known, event, index));
  return next;
}

function grown(part: Part | undefined, event: AgentEvent, index: number): Part {
  const more = plain(event.content);
  const { eventType, toolCallId, toolName } = event.metadata;
  if (eventType === "tool_input_delta") {
    const call = part?.type === "tool" ? part.call : { ...newCall(toolCallId ?? ""), name: toolName };
    return { type: "tool", index, call: { ...call, inputText: call.inputText + more } };
  }
  const type = eventType === "thinking_delta" ? "reasoning" : "text";
  return { type, index, text: part?.type === type ? part.text + more : more };
}

function newCall(id: string): ToolCall {
  return {
    id,
    name: undefined,
    state: "preparing",
    inputText: "",
    input: undefined,
    result: undefined,
    patch: undefined,
    event: undefined,
    endedAt: undefined,
    children: [],
  };
}

/** A complete message replaces its deltas at the place of the first delta, and takes over its own calls. */
function complete(draft: Draft, event: AgentEvent): void {
  const id = event.metadata.messageId ?? event.id;
  const streamed = draft.take(id);
  const calls = new Map((streamed ? callsOf(streamed) : []).map((call) => [call.id, call]));
  const blocks = Array.isArray(event.content) ? event.content : event.content === "" ? [] : [{ type: "text", text: event.content }];
  const parts = blocks.map((block: unknown, index): Part => partOf(block, index, (callId) => takeCall(draft, calls, callId)));
  const message: AssistantMessage = {
    kind: "assistant",
    ...placed(event),
    id,
    sequence: event.firstSequence ?? streamed?.sequence ?? event.sequenceNumber,
    state: (event.metadata.outcome ?? "complete") as MessageOutcome,
    parts,
  };
  draft.insert(message);
  for (const call of callsOf(message)) if (call.state === "running") draft.index.open.add(call.id);
  for (const call of calls.values()) standAlone(draft, call);
}

function partOf(block: unknown, index: number, call: (id: string) => ToolCall): Part {
  const { type, text, id, name, input } = (block ?? {}) as Record<string, unknown>;
  if ((type === "text" || type === "reasoning") && typeof text === "string") return { type, index, text };
  if (type === "tool_use" && typeof id === "string" && typeof name === "string") {
    const known = call(id);
    const state = known.state === "preparing" ? "running" : known.state;
    return { type: "tool", index, call: { ...known, name, state, input, inputText: "" } };
  }
  return { type: "other", index, value: block };
}

/** Finds a call: in the deltas, or as an item outside of a message. If there is none, creates it. */
function takeCall(draft: Draft, calls: Map<string, ToolCall>, id: string): ToolCall {
  const streamed = calls.get(id);
  calls.delete(id);
  if (streamed) return streamed;
  const owner = draft.index.owners.get(id);
  const item = owner === undefined ? undefined : draft.find(owner);
  if (owner === undefined || item?.kind !== "tool") return newCall(id);
  draft.take(owner);
  return item.call;
}

/**
 * If a message does not contain a call, the call becomes an item of its own. A call that was never reported is dropped,
 * but its children are kept.
 */
function standAlone(draft: Draft, call: ToolCall): void {
  draft.index.open.delete(call.id);
  if (!call.event) {
    for (const child of call.children) draft.insert(child);
    return;
  }
  draft.insert({ kind: "tool", ...call.event, changed: call.event.sequence, call });
  if (call.state === "running") draft.index.open.add(call.id);
}

function abandon(draft: Draft, id: string | undefined): void {
  const item = id === undefined ? undefined : draft.find(id);
  if (id === undefined || item?.kind !== "assistant" || item.state !== "streaming") return;
  draft.take(id);
  for (const call of callsOf(item)) standAlone(draft, call);
}

function toolUse(draft: Draft, event: AgentEvent): void {
  const { toolCallId, toolName } = event.metadata;
  const { id = toolCallId ?? event.id, name = toolName, input } = (event.content ?? {}) as { id?: string; name?: string; input?: unknown };
  const { changed: _, ...told } = placed(event);
  const known = draft.call(id);
  if (known && !known.event && known.result === undefined) {
    return draft.changeCall(id, (call) => ({ ...call, name, input, state: "running", inputText: "", event: told }));
  }
  draft.insert({ kind: "tool", ...placed(event), call: { ...newCall(id), name, input, state: "running", event: told } });
  draft.index.open.add(id);
}

function toolResult(draft: Draft, event: AgentEvent): void {
  const { toolCallId = event.id, isError, patch } = event.metadata;
  const state = isError ? "failed" : "completed";
  const told = { result: event.content, patch, state, endedAt: event.createdAt } as const;
  if (draft.call(toolCallId)) return draft.changeCall(toolCallId, (call) => ({ ...call, ...told }));
  draft.insert({ kind: "tool", ...placed(event), call: { ...newCall(toolCallId), ...told } });
}

function asked(draft: Draft, event: AgentEvent): void {
  const { requestId, toolCallId, toolName, input, options, accepts, expiresAt, defaultOptionId } = fieldsOf<QuestionMessage>(event.content);
  if (typeof requestId !== "string") return notice(draft, event);
  draft.insert({
    kind: "question",
    ...placed(event),
    requestId,
    toolCallId,
    toolName: toolName ?? "",
    input,
    options: options ?? [],
    accepts: accepts ?? {},
    expiresAt,
    defaultOptionId,
    state: "open",
    settledAt: undefined,
    ...unanswered,
  });
}

const unanswered = { optionId: undefined, optionIds: [], text: undefined, note: undefined, by: undefined } as const;

function settled(draft: Draft, event: AgentEvent): void {
  const { requestId = "", optionId, optionIds, text, note, by } = fieldsOf<QuestionMessage>(event.content);
  const chosen = optionIds ?? (optionId === undefined ? [] : [optionId]);
  const when = { changed: event.sequenceNumber, settledAt: event.createdAt };
  draft.settle(requestId, { ...when, state: "resolved", optionId, optionIds: chosen, text, note, by });
}

function fieldsOf<T>(content: unknown): Partial<T> {
  return typeof content === "object" && content !== null ? content : {};
}

function result(draft: Draft, event: AgentEvent): void {
  const when = { changed: event.sequenceNumber, settledAt: event.createdAt };
  for (const id of [...draft.index.questions.keys()]) draft.settle(id, { ...when, state: "closed", ...unanswered });
  for (const id of [...draft.index.open]) draft.changeCall(id, (call) => ({ ...call, state: "unanswered" }));
  const { outcome, turn, durationMs, messageCount, numTurns, costUsd, usage, error, origin } = event.metadata;
  const text = plain(event.content);
  const item: Item = {
    kind: "result",
    ...placed(event),
    outcome: (outcome ?? "completed") as TurnOutcome,
    text,
    isRepeated: isSaid(draft.items, text.trim()),
    ...{ turn, durationMs, messageCount, numTurns, costUsd, usage, error, origin },
  };
  draft.insert(item);
}

/**
 * Whether a message of the newest turn has this text. A message that still streams does not count, because the agent
 * may abandon it.
 */
function isSaid(items: readonly Item[], text: string): boolean {
  if (text === "") return false;
  for (let at = items.length - 1; at >= 0; at -= 1) {
    const item = items[at];
    if (!item || item.kind === "user" || item.kind === "result") return false;
    if (item.parentToolCallId !== undefined) continue;
    if (item.kind === "error" && item.text.trim() === text) return true;
    if (item.kind !== "assistant" || item.state === "streaming") continue;
    const texts = item.parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
    if (texts.join("").trim() === text || texts.at(-1)?.trim() === text) return true;
  }
  return false;
}
