// What the user has written to an agent and not sent. It outlives the composer: another agent may be shown, the session may
// end, or the page may be loaded again. Each tab has its own.
import { useCallback, useSyncExternalStore } from "react";

import { base } from "../connection/address.ts";
import { draftKey } from "../ui/tab-texts.ts";

/** Instead of an agent's id: the prompt of an agent that is not launched yet. */
export const newAgent = "new";

/** The texts that the browser does not store, because the storage is full or disabled. */
const unstored = new Map<string, string>();

const listeners = new Set<() => void>();

/** The text, and a function that changes it. The function is the same for the same agent. */
export function useText(agentId: string): [text: string, change: (to: (now: string) => string) => void] {
  const text = useSyncExternalStore(
    subscribe,
    useCallback(() => textFor(agentId), [agentId]),
  );
  const change = useCallback((to: (now: string) => string) => keep(agentId, to(textFor(agentId))), [agentId]);
  return [text, change];
}

/** Changes a text for whoever shows it. */
export function setText(agentId: string, text: string): void {
  keep(agentId, text);
}

/** One text in front of another, each in lines of its own. */
export function joined(first: string, second: string): string {
  return [first, second].filter(Boolean).join("\n");
}

function textFor(agentId: string): string {
  const text = unstored.get(agentId);
  if (text !== undefined) return text;
  try {
    return sessionStorage.getItem(keyOf(agentId)) ?? "";
  } catch {
    return "";
  }
}

function keep(agentId: string, text: string): void {
  unstored.delete(agentId);
  try {
    if (text) sessionStorage.setItem(keyOf(agentId), text);
    else sessionStorage.removeItem(keyOf(agentId));
  } catch {
    unstored.set(agentId, text);
  }
  for (const listener of [...listeners]) listener();
}

/** A path below which another server is reached has its own texts. */
function keyOf(agentId: string): string {
  return `${draftKey}${base} ${agentId}`;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
