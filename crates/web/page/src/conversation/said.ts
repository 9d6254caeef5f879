import type { AssistantMessage, Item } from "@tokenrail/client";

/**
 * Counts how much an agent and its sub-agents say while the user watches. The history may arrive later, and does not
 * count.
 */
export class Said {
  /** The newest event at the first call. */
  #old = 0;
  readonly #lengths = new Map<string, number>();
  /** Items that were already counted. A changed item is another object. */
  #seen = new WeakSet<Item>();

  /** The number of characters since the previous call. */
  look(items: readonly Item[]): number {
    const isFirst = this.#lengths.size === 0;
    if (isFirst) this.#old = items.reduce((newest, { changed }) => Math.max(newest, changed), 0);
    return items.reduce((total, item) => total + this.#more(item), 0);
  }

  #more(item: Item): number {
    if (this.#seen.has(item)) return 0;
    this.#seen.add(item);
    const length = lengthOf(item);
    const before = this.#lengths.get(item.id) ?? (item.sequence > this.#old ? 0 : length);
    this.#lengths.set(item.id, length);
    return Math.max(0, length - before);
  }
}

/** The text of an item object never changes: an item that grows is replaced by another object. */
const lengths = new WeakMap<Item, number>();

function lengthOf(item: Item): number {
  let length = lengths.get(item);
  if (length === undefined) {
    length = item.kind === "assistant" ? lengthOfParts(item) : item.kind === "tool" ? lengthIn(item.call.children) : 0;
    lengths.set(item, length);
  }
  return length;
}

function lengthIn(items: readonly Item[]): number {
  return items.reduce((total, item) => total + lengthOf(item), 0);
}

function lengthOfParts({ parts }: AssistantMessage): number {
  return parts.reduce((total, part) => {
    if (part.type !== "tool") return total + (part.type === "other" ? 0 : part.text.length);
    const { inputText, input, children } = part.call;
    return total + (inputText || JSON.stringify(input ?? "")).length + lengthIn(children);
  }, 0);
}
