// Turns events into messages. The functions are pure, and fast enough to be called for each event.
import type { AgentEvent } from "../frames.js";
import { Draft, Index, indexOf } from "./draft.js";
import { apply } from "./events.js";
import type { Item, Message } from "./types.js";

export type * from "./types.js";

/** What the events of an agent add up to. */
export interface Transcript {
  /** The number of the newest event that was applied. This is the cursor from which to continue. */
  readonly last: number;
  /** All items, including notices, in order. */
  readonly items: readonly Item[];
}

export const emptyTranscript: Transcript = Object.freeze({ last: 0, items: Object.freeze([]) as readonly Item[] });

/**
 * The index finds the item that an event is about. It is kept only for the newest transcript. If events are applied to
 * an older transcript, its index is built again from its items.
 */
const indices = new WeakMap<Transcript, Index>();
const conversations = new WeakMap<readonly Item[], readonly Message[]>();

/**
 * Returns the transcript after these events. They must be in order, but may have gaps, like the pages of `messages`.
 * Events at or below `last` are dropped. Items that do not change remain the same objects.
 */
export function applyEvents(transcript: Transcript, events: Iterable<AgentEvent>): Transcript {
  let draft: Draft | undefined;
  for (const event of events) {
    if (event.sequenceNumber <= (draft ?? transcript).last) continue;
    draft ??= open(transcript);
    apply(draft, event);
    draft.last = event.sequenceNumber;
  }
  if (!draft) return transcript;
  const next: Transcript = { last: draft.last, items: draft.items };
  indices.set(next, draft.index);
  return next;
}

/**
 * Returns the state after one more event. The first call needs no state: `events.reduce(reduceMessages, undefined)`.
 */
export function reduceMessages(state: Transcript | undefined, event: AgentEvent): Transcript {
  return applyEvents(state ?? emptyTranscript, [event]);
}

/** Marks everything up to `last` as known, because the page from which the transcript was made may end with a gap. */
export function advance(transcript: Transcript, last: number): Transcript {
  if (last <= transcript.last) return transcript;
  const next = { ...transcript, last };
  const index = indices.get(transcript);
  indices.delete(transcript);
  if (index) indices.set(next, index);
  return next;
}

/** The conversation without the notices. Returns the same array for the same items. */
export function messagesOf(transcript: Transcript): readonly Message[] {
  const { items } = transcript;
  let messages = conversations.get(items);
  if (!messages) {
    messages = items.filter((item): item is Message => item.kind !== "notice");
    conversations.set(items, messages);
  }
  return messages;
}

/**
 * The text that a message adds to the conversation. A result that repeats a message of its turn adds no text. Its
 * `text` still contains it.
 */
export function textOf(message: Item): string {
  // The text of a question is the user's answer to it.
  if (message.kind === "question" || (message.kind === "result" && message.isRepeated)) return "";
  if (message.kind === "assistant") return message.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
  return "text" in message ? message.text : "";
}

function open(transcript: Transcript): Draft {
  const index = indices.get(transcript) ?? indexOf(transcript.items);
  indices.delete(transcript);
  return new Draft(transcript.last, transcript.items, index);
}
