// Prompts that the user has saved under a name, in this browser.
import { useCallback, useSyncExternalStore } from "react";

import { base } from "../connection/address.ts";
import { fieldsOf } from "../content/given.ts";
import { followStored, storedChanged } from "../ui/stored.ts";

export interface SavedPrompt {
  readonly name: string;
  readonly prompt: string;
}

/** So many prompts can be saved. */
export const savedPrompts = 20;

/** A longer prompt cannot be saved, so that the storage is bounded. */
export const savedLength = 10_000;

/** A longer name would not fit into its button. */
export const savedNameLength = 60;

/** A path below which another server is reached has its own prompts. */
const key = `tokenrail-prompts${base}`;

/** The saved prompts by name. */
export function useSavedPrompts() {
  const text = useSyncExternalStore(followStored, stored);
  const prompts = promptsIn(text).sort(byName);
  const save = useCallback((prompt: SavedPrompt) => {
    const others = promptsIn(stored()).filter(({ name }) => name !== prompt.name);
    return keep([...others, prompt].slice(-savedPrompts));
  }, []);
  const forget = useCallback((name: string) => void keep(promptsIn(stored()).filter((each) => each.name !== name)), []);
  return { prompts, save, forget };
}

/** In the order in which they were saved. */
function promptsIn(text: string): SavedPrompt[] {
  try {
    const kept: unknown = JSON.parse(text);
    return Array.isArray(kept) ? kept.filter(isPrompt).slice(0, savedPrompts) : [];
  } catch {
    // Something else has written it.
    return [];
  }
}

function isPrompt(entry: unknown): entry is SavedPrompt {
  const { name, prompt } = fieldsOf(entry);
  return typeof name === "string" && typeof prompt === "string";
}

function byName(one: SavedPrompt, other: SavedPrompt): number {
  return one.name.localeCompare(other.name);
}

function stored(): string {
  try {
    return localStorage.getItem(key) ?? "[]";
  } catch {
    return "[]";
  }
}

/** Returns whether the browser has stored them. */
function keep(prompts: readonly SavedPrompt[]): boolean {
  try {
    localStorage.setItem(key, JSON.stringify(prompts));
  } catch {
    return false;
  }
  storedChanged();
  return true;
}
