// Journals to test with: what a server would have saved, event by event.
import { eventId } from "../src/deltas.js";
import type { AgentEvent } from "../src/frames.js";
import type { AgentDeltas, AgentMessageMetadata, Content, MessageOutcome } from "../src/generated/wire.js";

export const AGENT = "01900000-0000-7000-8000-000000000001";

/** What may be answered to a question. */
export const ANSWERS = [
  { optionId: "y", name: "Allow", kind: "allow_once" },
  { optionId: "n", name: "Reject", kind: "reject_once" },
];

/** The time of the event 0. */
const TIME = 1_795_299_000_000;

export interface OpenMessage {
  id: string;
  first: number | undefined;
  blocks: { type: "text" | "reasoning" | "tool_use"; text?: string; id?: string; name?: string; input?: unknown }[];
}

export class Journal {
  readonly events: AgentEvent[] = [];
  readonly agentId: string;
  #ids = 0;

  constructor(agentId = AGENT) {
    this.agentId = agentId;
  }

  freshId(): string {
    this.#ids += 1;
    return `${this.agentId.slice(0, 24)}${String(this.#ids).padStart(12, "0")}`;
  }

  add(type: AgentEvent["type"], content: Content, metadata: AgentMessageMetadata, more: Partial<AgentEvent> = {}): AgentEvent {
    const sequenceNumber = this.events.length + 1;
    const event: AgentEvent = {
      id: this.freshId(),
      agentId: this.agentId,
      sequenceNumber,
      type,
      content,
      metadata,
      createdAt: new Date(TIME + sequenceNumber).toISOString(),
      ...more,
    };
    this.events.push(event);
    return event;
  }

  user(text: string, turn = 1): void {
    this.add("user", text, { eventType: "user_message", turn }, { role: "user" });
  }

  message(): OpenMessage {
    return { id: this.freshId(), first: undefined, blocks: [] };
  }

  /** More of a message: of its newest block, if that is of the same kind. */
  say(message: OpenMessage, text: string, type: "text" | "reasoning" = "text"): void {
    let block = message.blocks.at(-1);
    if (block?.type !== type) message.blocks.push((block = { type, text: "" }));
    block.text += text;
    this.#delta(message, text, { eventType: type === "text" ? "content_delta" : "thinking_delta" });
  }

  /** A call within a message: pieces of its input, and the event that tells it. */
  call(message: OpenMessage, name: string, input: unknown, { id = `call-${this.freshId()}`, streamed = true, told = true, parent }: { id?: string; streamed?: boolean; told?: boolean; parent?: string | undefined } = {}): string {
    message.blocks.push({ type: "tool_use", id, name, input });
    if (streamed) {
      const text = JSON.stringify(input);
      this.#delta(message, text.slice(0, 3), { eventType: "tool_input_delta", toolCallId: id, toolName: name });
      this.#delta(message, text.slice(3), { eventType: "tool_input_delta", toolCallId: id });
    }
    if (told) this.toolUse(id, name, input, parent);
    return id;
  }

  toolUse(id: string, name: string, input: unknown, parent?: string): void {
    const metadata = { eventType: "tool_use", toolCallId: id, toolName: name, ...(parent && { parentToolCallId: parent }) };
    this.add("tool", { type: "tool_use", id, name, input }, metadata, { role: "tool" });
  }

  result(callId: string, content: Content, isError = false): void {
    this.add("user", content, { eventType: "tool_result", toolCallId: callId, isError }, { role: "user" });
  }

  complete(message: OpenMessage, { outcome = "complete" as MessageOutcome, parent }: { outcome?: MessageOutcome; parent?: string | undefined } = {}): void {
    const { id, first, blocks } = message;
    const isText = blocks.every((block) => block.type === "text");
    const content = isText ? blocks.map((block) => block.text).join("") : blocks;
    const metadata = { eventType: "message", messageId: id, outcome, ...(parent && { parentToolCallId: parent }) };
    this.add("assistant", content, metadata, { id, role: "assistant", ...(first !== undefined && { firstSequence: first }) });
  }

  abandon(message: OpenMessage): void {
    this.add("system", "", { eventType: "abandoned", messageId: message.id }, { role: "system" });
  }

  ask(requestId: string, toolCallId?: string, more: object = {}): void {
    const content = { requestId, toolName: "Bash", input: { command: "ls" }, options: ANSWERS, expiresAt: "later", defaultOptionId: "n", ...(toolCallId && { toolCallId }), ...more };
    this.add("system", content as never, { eventType: "permission_request" });
  }

  settle(requestId: string, how: object): void {
    this.add("system", { requestId, ...how } as never, { eventType: "permission_resolved" });
  }

  notice(eventType: string, data: unknown = {}): void {
    this.add("system", "", { eventType, data }, { role: "system" });
  }

  error(text: string): void {
    this.add("error", text, { eventType: "error", error: { class: "overloaded", recoverable: true } });
  }

  end(text = "", turn = 1): void {
    this.add("response", text, { eventType: "result", outcome: "completed", turn, durationMs: 5, messageCount: 1 });
  }

  #delta(message: OpenMessage, text: string, metadata: AgentMessageMetadata): void {
    const part = message.blocks.length - 1;
    const sequence = this.events.length + 1;
    const id = eventId(this.agentId, TIME + sequence, sequence);
    const event = this.add("assistant", text, { ...metadata, messageId: message.id, part }, { id, role: "assistant" });
    message.first ??= event.sequenceNumber;
  }
}

/** What a server makes of events for who asks for packed deltas. */
export function packed(events: readonly AgentEvent[]): (AgentEvent | AgentDeltas)[] {
  const items: (AgentEvent | AgentDeltas)[] = [];
  let before = 0;
  for (const event of events) {
    const { agentId, sequenceNumber, content, metadata, createdAt } = event;
    const { eventType, messageId, part, toolCallId, toolName } = metadata;
    if (!/^(content|thinking|tool_input)_delta$/.test(eventType)) {
      items.push(event);
      continue;
    }
    const last = items.at(-1);
    const goesOn =
      last && "texts" in last && last.to + 1 === sequenceNumber && last.eventType === eventType && last.messageId === messageId && last.part === part && last.toolCallId === toolCallId && toolName === undefined;
    if (goesOn) {
      last.to = sequenceNumber;
      last.texts.push(content as string);
      last.elapsedMs ??= last.texts.slice(1).map(() => 0);
      last.elapsedMs.push(Date.parse(createdAt) - before);
      before = Date.parse(createdAt);
      continue;
    }
    before = Date.parse(createdAt);
    const more = { ...(toolCallId !== undefined && { toolCallId }), ...(toolName !== undefined && { toolName }) };
    items.push({ agentId, messageId: messageId as string, part: part as number, eventType: eventType as AgentDeltas["eventType"], ...more, from: sequenceNumber, to: sequenceNumber, createdAt, texts: [content as string] });
  }
  return items;
}

/** What a page of `messages` has: no delta of a message that is complete, or void, by now. */
export function folded(events: readonly AgentEvent[]): AgentEvent[] {
  const over = new Set(events.filter(({ metadata }) => metadata.eventType === "message" || metadata.eventType === "abandoned").map(({ metadata }) => metadata.messageId));
  return events.filter(({ metadata }) => !(metadata.eventType.endsWith("_delta") && metadata.messageId !== undefined && over.has(metadata.messageId)));
}

/** The numbers of the next events. */
export async function take(events: AsyncIterator<AgentEvent>, count: number): Promise<number[]> {
  const numbers: number[] = [];
  while (numbers.length < count) {
    const { done, value } = await events.next();
    if (done) break;
    numbers.push(value.sequenceNumber);
  }
  return numbers;
}
