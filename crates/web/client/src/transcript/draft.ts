// A transcript while events are applied to it. Arrays are copied once, and objects when they change.
import type { AssistantMessage, Item, Part, QuestionMessage, ToolCall } from "./types.js";

/** The maximum depth of nested sub-agents. Deeper items are placed at the top level. */
const DEPTH = 16;

/** The place of a message: among the children of a call, or at the top level. */
interface Place {
  readonly parent: string | undefined;
  readonly sequence: number;
}

export class Index {
  /** Maps the id of an item that may still change (a message, or a call outside of a message) to its place. */
  readonly places = new Map<string, Place>();
  /** Maps the id of a call to the id of the item that contains it. */
  readonly owners = new Map<string, string>();
  /** Maps the id of an unknown call to the ids of the items that belong under it. */
  readonly orphans = new Map<string, Set<string>>();
  /** Calls that wait for a result. */
  readonly open = new Set<string>();
  /** Maps the id of an open permission request to the id of its item. */
  readonly questions = new Map<string, string>();
}

export function indexOf(items: readonly Item[]): Index {
  const index = new Index();
  const pending: { items: readonly Item[]; parent: string | undefined }[] = [{ items, parent: undefined }];
  for (let list = pending.pop(); list; list = pending.pop()) {
    for (const item of list.items) {
      if (isPlaced(item)) {
        index.places.set(item.id, { parent: list.parent, sequence: item.sequence });
        if (list.parent === undefined) markOrphan(index, item);
      }
      if (item.kind === "question" && item.state === "open") index.questions.set(item.requestId, item.id);
      for (const call of callsOf(item)) {
        index.owners.set(call.id, item.id);
        if (call.state === "running") index.open.add(call.id);
        pending.push({ items: call.children, parent: call.id });
      }
    }
  }
  return index;
}

/** Whether the item may still change. */
function isPlaced(item: Item): boolean {
  return item.kind === "assistant" || item.kind === "tool" || item.kind === "question";
}

function markOrphan({ orphans }: Index, { id, parentToolCallId }: Item): void {
  if (parentToolCallId === undefined) return;
  const ids = orphans.get(parentToolCallId);
  if (ids) ids.add(id);
  else orphans.set(parentToolCallId, new Set([id]));
}

export function callsOf(item: Item): ToolCall[] {
  if (item.kind === "tool") return [item.call];
  if (item.kind !== "assistant") return [];
  return item.parts.flatMap((part) => (part.type === "tool" ? [part.call] : []));
}

export class Draft {
  last: number;
  readonly index: Index;
  #items: readonly Item[];
  /** Whether this draft already has its own copy of the array. */
  #copied = false;

  constructor(last: number, items: readonly Item[], index: Index) {
    this.last = last;
    this.#items = items;
    this.index = index;
  }

  get items(): readonly Item[] {
    return this.#items;
  }

  /** Inserts an item at its place: under the call that started its sub-agent, if that call is known. */
  insert(item: Item): void {
    const parent = this.#parentOf(item);
    this.#edit(parent, (items) => items.splice(placeOf(items, item.sequence), 0, item));
    if (!isPlaced(item)) return;
    if (item.kind === "question") this.index.questions.set(item.requestId, item.id);
    this.index.places.set(item.id, { parent, sequence: item.sequence });
    if (parent === undefined) markOrphan(this.index, item);
    for (const call of callsOf(item)) this.own(call.id, item.id);
  }

  /** Records that the item contains the call, and moves the items that wait for the call under it. */
  own(call: string, item: string): void {
    this.index.owners.set(call, item);
    const orphans = this.index.orphans.get(call);
    if (!orphans) return;
    this.index.orphans.delete(call);
    for (const id of orphans) {
      const orphan = this.find(id);
      // An item that would be inside itself stays where it is.
      if (!orphan || this.#parentOf(orphan) === undefined) continue;
      this.take(id);
      this.insert(orphan);
    }
  }

  /** Removes the item with this id from its place, and returns it. */
  take(id: string): Item | undefined {
    const place = this.index.places.get(id);
    if (!place) return undefined;
    this.index.places.delete(id);
    let taken: Item | undefined;
    this.#edit(place.parent, (items) => {
      [taken] = items.splice(placeOf(items, place.sequence), 1);
    });
    for (const call of taken ? callsOf(taken) : []) if (this.index.owners.get(call.id) === id) this.index.owners.delete(call.id);
    return taken;
  }

  find(id: string): Item | undefined {
    const place = this.index.places.get(id);
    if (!place) return undefined;
    const items = this.#children(place.parent);
    return items[placeOf(items, place.sequence)];
  }

  call(id: string): ToolCall | undefined {
    const owner = this.index.owners.get(id);
    const item = owner === undefined ? undefined : this.find(owner);
    return item && callsOf(item).find((call) => call.id === id);
  }

  changeMessage(id: string, change: (message: AssistantMessage) => AssistantMessage): void {
    this.#change(id, (item) => (item.kind === "assistant" ? change(item) : item));
  }

  /** Settles an open permission request. Any other permission request stays unchanged. */
  settle(
    requestId: string,
    change: Pick<QuestionMessage, "changed" | "state" | "settledAt" | "optionId" | "optionIds" | "text" | "note" | "by">,
  ): void {
    const id = this.index.questions.get(requestId);
    if (id === undefined) return;
    this.index.questions.delete(requestId);
    this.#change(id, (item) => (item.kind === "question" ? { ...item, ...change } : item));
  }

  changeCall(id: string, change: (call: ToolCall) => ToolCall): void {
    const owner = this.index.owners.get(id);
    if (owner === undefined) return;
    this.#change(owner, (item) => withCall(item, id, change));
    const call = this.call(id);
    if (call?.state === "running") this.index.open.add(id);
    else this.index.open.delete(id);
  }

  #change(id: string, change: (item: Item) => Item): void {
    const place = this.index.places.get(id);
    if (!place) return;
    this.#edit(place.parent, (items) => {
      const at = placeOf(items, place.sequence);
      const item = items[at];
      if (item) items[at] = change(item);
    });
  }

  #edit(parent: string | undefined, edit: (items: Item[]) => void): void {
    if (parent !== undefined) {
      const owner = this.index.owners.get(parent);
      if (owner === undefined) return;
      return this.#change(owner, (item) =>
        withCall(item, parent, (call) => {
          const children = [...call.children];
          edit(children);
          return { ...call, children };
        }),
      );
    }
    if (!this.#copied) this.#items = [...this.#items];
    this.#copied = true;
    edit(this.#items as Item[]);
  }

  #children(parent: string | undefined): readonly Item[] {
    if (parent === undefined) return this.#items;
    return this.call(parent)?.children ?? [];
  }

  /** The call under which an item belongs. Undefined if it is unknown, nested too deeply, or inside the item itself. */
  #parentOf(item: Item): string | undefined {
    const { parentToolCallId } = item;
    if (parentToolCallId === undefined) return undefined;
    const own = new Set(callsOf(item).map((call) => call.id));
    let call: string | undefined = parentToolCallId;
    for (let depth = 0; depth < DEPTH; depth += 1) {
      if (call === undefined) return parentToolCallId;
      const owner = this.index.owners.get(call);
      if (owner === undefined || owner === item.id || own.has(call)) return undefined;
      call = this.index.places.get(owner)?.parent;
    }
    return undefined;
  }
}

function withCall(item: Item, id: string, change: (call: ToolCall) => ToolCall): Item {
  if (item.kind === "tool") return { ...item, call: change(item.call) };
  if (item.kind !== "assistant") return item;
  const parts = item.parts.map((part): Part => (part.type === "tool" && part.call.id === id ? { ...part, call: change(part.call) } : part));
  return { ...item, parts };
}

/** The index of the item with this number, or the index at which to insert it. Usually, this is the end. */
function placeOf(items: readonly Item[], sequence: number): number {
  let [low, high] = [0, items.length];
  const newest = items[high - 1];
  if (newest && newest.sequence <= sequence) return newest.sequence === sequence ? high - 1 : high;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((items[middle] as Item).sequence < sequence) low = middle + 1;
    else high = middle;
  }
  return low;
}
