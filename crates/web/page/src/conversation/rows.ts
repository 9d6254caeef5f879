// Turns the items of a transcript into the rows of the list. An unchanged item keeps its row object, so React does not
// render the row again.
import type { AssistantMessage, Item, Part, ToolCall } from "@tokenrail/client";

import { withQuestions } from "./asked.ts";
import type { Row, TextRow, ToolRow, ToolState } from "./row.ts";
import { withServerCalls } from "./server-calls.ts";

const states: Record<ToolCall["state"], ToolState> = {
  preparing: "writing",
  running: "running",
  completed: "done",
  failed: "failed",
  unanswered: "stopped",
};

const rowsOfItems = new WeakMap<Item, readonly Row[]>();
const rowsOfParts = new WeakMap<Part, Row>();

export function rowsOf(items: readonly Item[]): Row[] {
  const rows: Row[] = [];
  for (const item of items) for (const row of rowsIn(item)) rows.push(row);
  return withQuestions(withoutRepeated(rows));
}

/** Some agents say the text of an error as a message of their own before. The error is enough. */
function withoutRepeated(rows: Row[]): Row[] {
  if (!rows.some(({ kind }) => kind === "error")) return rows;
  return rows.filter((row, at) => {
    if (row.kind !== "text" || row.streaming) return true;
    const next = rows.slice(at + 1, at + 1 + nearError).find(({ kind }) => kind !== "notice");
    return next?.kind !== "error" || next.text.trim() !== row.text.trim();
  });
}

/** Notices may be between a message and the error that repeats it. */
const nearError = 5;

function rowsIn(item: Item): readonly Row[] {
  let rows = rowsOfItems.get(item);
  if (!rows) {
    rows = item.kind === "assistant" ? partRows(item) : [rowOf(item)];
    rowsOfItems.set(item, rows);
  }
  return rows;
}

function rowOf(item: Exclude<Item, AssistantMessage>): Row {
  const common = { key: item.id, sequence: item.sequence, time: item.createdAt };
  switch (item.kind) {
    case "user":
      return {
        ...common,
        kind: "prompt",
        type: "user / user_message",
        text: item.text,
        ...(item.images && { turn: item.turn, images: item.images }),
      };
    case "tool":
      return toolRow(item.call, item, item.id);
    case "error": {
      const { error } = item;
      const { code, retryAfter, recoverable = false } = error ?? {};
      return {
        ...common,
        kind: "error",
        type: "error / error",
        text: item.text,
        class: error?.class ?? "unknown",
        code,
        retryAfter,
        recoverable,
      };
    }
    case "result": {
      const { outcome, durationMs = 0, costUsd, usage, numTurns } = item;
      return {
        ...common,
        kind: "result",
        type: "response / result",
        outcome,
        durationMs,
        costUsd,
        usage,
        requests: numTurns,
      };
    }
    case "question":
      return {
        ...common,
        sequence: item.changed,
        kind: "question",
        type: item.state === "resolved" ? "system / permission_resolved" : "system / permission_request",
        question: item,
      };
    case "notice": {
      const data = item.data ?? { ...(item.stopReason && { stopReason: item.stopReason }), usage: item.usage };
      return { ...common, kind: "notice", type: `system / ${item.eventType}`, name: item.eventType, data };
    }
  }
}

function partRows(message: AssistantMessage): Row[] {
  const streaming = message.state === "streaming";
  const last = message.parts.length - 1;
  const rows = message.parts.flatMap((part, index) => {
    const row = partRow(message, part, streaming && index === last);
    return row ? [row] : [];
  });
  return withServerCalls(rows);
}

function partRow(message: AssistantMessage, part: Part, streaming: boolean): Row | undefined {
  const key = `${message.id}:${part.index}`;
  const before = rowsOfParts.get(part);
  // The call is a part of the part. Its sub-agent may say more, and the other calls of the message stay as they are.
  if (before?.kind === "tool" && part.type === "tool") return before;
  const common = { key, sequence: message.changed, time: message.createdAt };
  let row: Row | undefined;
  if (part.type === "tool") row = toolRow(part.call, message, key);
  else if (part.type === "other")
    row = { ...common, kind: "notice", type: "assistant / message", name: "content", data: part.value };
  else row = wordsRow(message, part, { key, streaming });
  // If a message grows in its last part, the rows of its other parts stay unchanged.
  if (before && isSame(before, row)) return before;
  if (row) rowsOfParts.set(part, row);
  return row;
}

function wordsRow(
  message: AssistantMessage,
  part: Extract<Part, { text: string }>,
  { key, streaming }: { key: string; streaming: boolean },
): TextRow | undefined {
  if (!part.text) return undefined;
  const thinking = part.type === "reasoning";
  const open = message.state === "streaming";
  const type = open ? (thinking ? "assistant / thinking_delta" : "assistant / content_delta") : "assistant / message";
  const outcome = open || message.state === "complete" ? undefined : message.state;
  return {
    key,
    kind: thinking ? "thinking" : "text",
    type,
    sequence: message.changed,
    began: message.sequence,
    time: message.createdAt,
    text: part.text,
    streaming,
    outcome,
  };
}

/** Whether both rows show the same. The number of the newest event may differ. */
function isSame(before: Row, now: Row | undefined): boolean {
  if (before.kind === "tool" || !now || before.kind !== now.kind) return false;
  return before.type === now.type && before.time === now.time && streamingOf(before) === streamingOf(now);
}

function streamingOf(row: Row): boolean {
  return "streaming" in row && row.streaming;
}

/** The id of a call is not a unique key: an agent may use it again in a later turn. */
function toolRow(call: ToolCall, item: Item, key: string): ToolRow {
  const { event } = call;
  const began = event?.createdAt ?? item.createdAt;
  return {
    key,
    kind: "tool",
    type: "tool / tool_use",
    sequence: event?.sequence ?? item.changed,
    time: began,
    callId: call.id,
    name: call.name ?? "Tool",
    input: call.input ?? call.inputText,
    state: states[call.state],
    output: call.result,
    patch: call.patch,
    took: call.endedAt === undefined ? undefined : Math.max(0, Date.parse(call.endedAt) - Date.parse(began)),
    inner: rowsOf(call.children),
    asked: [],
  };
}
