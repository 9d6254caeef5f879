import { type Agent, type Changes, TokenrailError } from "@tokenrail/client";
import { useTokenrail } from "@tokenrail/client/react";
import { useEffect, useMemo, useRef, useState } from "react";

import { isActive } from "../../agents/StatusBadge.tsx";
import { soon } from "../../ui/soon.ts";
import type { Row } from "../row.ts";
import { type CalledFile, changingCalls, filesOfCalls } from "./called.ts";

/** The changes of an agent: as git sees them, and as the agent's calls say. */
export interface KnownChanges {
  /** Absent until the server has answered. */
  readonly git: Changes | undefined;
  readonly called: readonly CalledFile[];
  /** Increases when git is asked again, so that what depends on it is loaded again. */
  readonly version: number;
  readonly error: Error | undefined;
  readonly refresh: () => void;
}

/** Calls that end within this time cause one request. */
const gatherMs = 700;

/**
 * Git is asked at the beginning and when a turn ends; while `isOpen`, also when a call ends. While nothing happens, it is
 * not asked.
 */
export function useChanges(agent: Agent, rows: readonly Row[], isOpen: boolean): KnownChanges {
  const calls = useStable(useMemo(() => changingCalls(rows), [rows]));
  const called = useMemo(() => filesOfCalls(calls, agent.cwd), [calls, agent.cwd]);
  const ended = useMemo(() => (isOpen ? endedCalls(rows) : 0), [rows, isOpen]);
  const client = useTokenrail();
  const [known, setKnown] = useState<{ git?: Changes; error?: Error; version: number }>({ version: 0 });
  const [asked, setAsked] = useState(0);
  const isFirst = useRef(true);
  const active = isActive(agent.status);
  // A copy has no folder here.
  const canAsk = !agent.readOnly;
  useEffect(() => {
    if (!canAsk) return;
    const leaving = new AbortController();
    const load = async () => {
      try {
        const git = await client.changes(agent.id, { signal: leaving.signal });
        setKnown(({ version }) => ({ git, version: version + 1 }));
      } catch (error) {
        if (leaving.signal.aborted) return;
        // A server of an earlier version does not know the path.
        const isOld = error instanceof TokenrailError && error.code === "not_found";
        setKnown((before) => (isOld ? before : { ...before, error: error as Error }));
      }
    };
    // The conversation is painted first.
    const cancel = isFirst.current ? soon(() => void load()) : after(gatherMs, () => void load());
    isFirst.current = false;
    return () => {
      cancel();
      leaving.abort();
    };
  }, [client, agent.id, agent.turn, active, ended, asked, canAsk]);
  return {
    git: canAsk ? known.git : undefined,
    called,
    version: known.version,
    error: known.error,
    refresh: () => setAsked((times) => times + 1),
  };
}

function after(milliseconds: number, then: () => void): () => void {
  const timer = setTimeout(then, milliseconds);
  return () => clearTimeout(timer);
}

/** The calls that have ended, with those of sub-agents. Any of them may have changed files. */
function endedCalls(rows: readonly Row[]): number {
  let count = 0;
  for (const row of rows) {
    if (row.kind === "group") count += row.calls.length;
    if (row.kind !== "tool") continue;
    if (row.state === "done" || row.state === "failed") count++;
    count += endedCalls(row.inner);
  }
  return count;
}

/** The same array as before if it has the same items: rows change with every token, and calls do not. */
function useStable<T>(items: readonly T[]): readonly T[] {
  const stable = useRef(items);
  const isSame = stable.current.length === items.length && items.every((item, at) => item === stable.current[at]);
  if (!isSame) stable.current = items;
  return stable.current;
}
