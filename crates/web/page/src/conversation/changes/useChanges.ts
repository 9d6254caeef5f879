import { type Agent, type Changes, TokenrailError } from "@tokenrail/client";
import { useTokenrail } from "@tokenrail/client/react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";

import { isActive } from "../../agent/StatusBadge.tsx";
import { soon } from "../../ui/soon.ts";
import { useKept } from "../kept.tsx";
import type { Row } from "../row.ts";
import { type CalledFile, changingCalls, filesOfCalls } from "./called.ts";
import { type ShownFile, shownFromCalls, shownFromGit, type Totals, totalsOf } from "./files.ts";
import { Paced } from "./paced.ts";

/** The changes of an agent. The object is the same until something in it changes. */
export interface KnownChanges extends Asked {
  /** As the agent's calls say. */
  readonly called: readonly CalledFile[];
  /** The files that are shown: as git sees them, or as the calls say. */
  readonly files: readonly ShownFile[];
  readonly totals: Totals;
  readonly isFromGit: boolean;
  /** Chooses the source of the files. Absent if there is only one. */
  readonly choose: ((source: "git" | "calls") => void) | undefined;
}

/** What git says. */
interface Asked {
  /** Absent until the server has answered. */
  readonly git: Changes | undefined;
  /** Increases when git is asked again, so that what depends on it is loaded again. */
  readonly version: number;
  readonly error: Error | undefined;
  readonly isAsking: boolean;
  readonly refresh: () => void;
}

/** Calls that end within this time cause one request. */
const gatherMs = 700;

const noRows: readonly Row[] = [];

/**
 * Git is asked at the beginning and when a turn ends; while `isOpen`, also when a call ends. While nothing happens, it is
 * not asked. A replay (not `live`) has no changes, because the files are those of now.
 */
export function useChanges(agent: Agent, rows: readonly Row[], isOpen: boolean, live: boolean): KnownChanges {
  const used = live ? rows : noRows;
  const calls = useStable(useMemo(() => changingCalls(used), [used]));
  const called = useMemo(() => filesOfCalls(calls, agent.cwd), [calls, agent.cwd]);
  const ended = useMemo(() => (isOpen ? endedCalls(used) : 0), [used, isOpen]);
  // A copy has no folder here.
  const asked = useGit(agent, ended, live && !agent.readOnly);
  const { git } = asked;
  const fromGit = git?.source === "git" ? git : undefined;
  // If git sees nothing, the calls may have changed files that it ignores, or that are elsewhere.
  const [wantsCalls, setWantsCalls] = useKept("changes from calls", fromGit?.files.length === 0);
  const hasBoth = fromGit !== undefined && called.length > 0;
  const isFromGit = fromGit !== undefined && !(wantsCalls && hasBoth);
  const files = useMemo(() => (isFromGit ? shownFromGit(fromGit.files) : shownFromCalls(called)), [fromGit, called, isFromGit]);
  const isMore = isFromGit && fromGit.truncated;
  const totals = useMemo(() => totalsOf(files, isMore), [files, isMore]);
  return useMemo(() => {
    const choose = hasBoth ? (source: "git" | "calls") => setWantsCalls(source === "calls") : undefined;
    return { ...asked, called, files, totals, isFromGit, choose };
  }, [asked, called, files, totals, isFromGit, hasBoth, setWantsCalls]);
}

function useGit(agent: Agent, ended: number, canAsk: boolean): Asked {
  const client = useTokenrail();
  const [known, setKnown] = useState<{ git?: Changes; error?: Error; version: number }>({ version: 0 });
  const [isAsking, setAsking] = useState(false);
  const paced = useRef<Paced>(undefined);
  useEffect(() => {
    if (!canAsk) return;
    const leaving = new AbortController();
    const load = async () => {
      setAsking(true);
      try {
        const git = await client.changes(agent.id, { signal: leaving.signal });
        setKnown(({ version }) => ({ git, version: version + 1 }));
      } catch (error) {
        if (leaving.signal.aborted) return;
        // A server of an earlier version does not know the path.
        const isOld = error instanceof TokenrailError && error.code === "not_found";
        setKnown((before) => (isOld ? before : { ...before, error: error as Error }));
      }
      setAsking(false);
    };
    const asking = new Paced(load, gatherMs);
    paced.current = asking;
    // The conversation is painted first.
    const cancel = soon(() => asking.askNow());
    return () => {
      cancel();
      asking.stop();
      leaving.abort();
    };
  }, [client, agent.id, canAsk]);
  useChanged(`${agent.turn} ${isActive(agent.status)}`, () => paced.current?.ask());
  useChanged(ended, () => ended > 0 && paced.current?.ask());
  const refresh = useCallback(() => paced.current?.askNow(), []);
  return useMemo(
    () => ({ git: canAsk ? known.git : undefined, version: known.version, error: known.error, isAsking, refresh }),
    [canAsk, known, isAsking, refresh],
  );
}

/** Calls `act` when the value is no longer the one of the first time. */
function useChanged(value: string | number, act: () => void): void {
  const last = useRef(value);
  useEffect(() => {
    if (last.current === value) return;
    last.current = value;
    act();
  });
}

const endedOf = new WeakMap<Row, number>();

/** The calls that have ended, with those of sub-agents. Any of them may have changed files. */
function endedCalls(rows: readonly Row[]): number {
  let count = 0;
  for (const row of rows) {
    if (row.kind === "group") count += row.calls.length;
    if (row.kind !== "tool") continue;
    let ended = endedOf.get(row);
    if (ended === undefined) {
      ended = (row.state === "done" || row.state === "failed" ? 1 : 0) + endedCalls(row.inner);
      endedOf.set(row, ended);
    }
    count += ended;
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
