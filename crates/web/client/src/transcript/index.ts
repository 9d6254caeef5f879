// Events to messages: a pure function, quick enough for an event at a time.
import type { AgentEvent } from "../frames.js";
import { Draft, Index, indexOf } from "./draft.js";
import { apply } from "./events.js";
import type { Item, Message } from "./types.js";

export type * from "./types.js";

/** What an agent's events come to. */
export interface Transcript {
  /** The number of the newest event that was applied: the cursor to go on from. */
  readonly last: number;
  /** Everything, notices too, in order. */
  readonly items: readonly Item[];
}

export const emptyTranscript: Transcript = Object.freeze({ last: 0, items: Object.freeze([]) as readonly Item[] });

/**
 * Where to find what an event is about, kept beside the newest transcript alone: a transcript that is not the newest
 * is as good, and its index is made again from its items.
 */
const indices = new WeakMap<Transcript, Index>();
const conversations = new WeakMap<readonly Item[], readonly Message[]>();

/**
 * The transcript after these events. They must come in order, but may have holes, as pages of `messages` have: what is
 * at or below `last` is dropped. What they do not change is the same object as before.
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

/** The state after one event more; the first one needs none: `events.reduce(reduceMessages, undefined)`. */
export function reduceMessages(state: Transcript | undefined, event: AgentEvent): Transcript {
  return applyEvents(state ?? emptyTranscript, [event]);
}

/** A transcript of which everything up to `last` is known: the page that it was made from may end with a hole. */
export function advance(transcript: Transcript, last: number): Transcript {
  if (last <= transcript.last) return transcript;
  const next = { ...transcript, last };
  const index = indices.get(transcript);
  indices.delete(transcript);
  if (index) indices.set(next, index);
  return next;
}

/** The conversation, without the notices; the same array for the same items. */
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
 * The text that a message adds to the conversation. A result that says once more what a message of its turn has said
 * adds none; its `text` has it.
 */
export function textOf(message: Item): string {
  if (message.kind === "result" && message.isRepeated) return "";
  if (message.kind === "assistant") return message.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
  return "text" in message ? message.text : "";
}

function open(transcript: Transcript): Draft {
  const index = indices.get(transcript) ?? indexOf(transcript.items);
  indices.delete(transcript);
  return new Draft(transcript.last, transcript.items, index);
}
