// What the user types or picks in a form of the conversation. Like the draft of a message, it outlives the form: the session
// may end, or the page may be loaded again.
import { useEffect, useState } from "react";

import { useText } from "../prompt/draft.ts";
import { useAgentId } from "./agent-id.ts";
import { useKeptValue } from "./kept.tsx";

/**
 * A value that is kept until `isOpen` is false, because the form was settled. Each key has values of one type, which JSON
 * can express.
 */
export function useTyped<T>(key: string, initial: T, isOpen: boolean): [T, (value: T) => void] {
  const agentId = useAgentId();
  const [text, change] = useText(`${agentId} ${key}`);
  const [first] = useState(() => restored(text) ?? initial);
  const [value, set] = useKeptValue<T>(key, first as T);
  useEffect(() => {
    if (!isOpen) change(() => "");
  }, [isOpen, change]);
  const keep = (next: T) => {
    set(next);
    if (agentId) change(() => JSON.stringify(next));
  };
  return [value, keep];
}

function restored(text: string): unknown {
  try {
    return text ? (JSON.parse(text) as unknown) : undefined;
  } catch {
    // Something else has written it.
    return undefined;
  }
}
