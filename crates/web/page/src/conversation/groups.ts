// Calls that succeeded are one line. Several of them, one after the other, are one line too.
import { fileIn } from "../content/given.ts";
import { imagesIn } from "../content/images.ts";
import { kindOf } from "../content/kind.ts";
import { counted } from "../ui/format.ts";
import { type GroupRow, groupKey, type Row, type ToolRow } from "./row.ts";

/** This many calls, one after the other, become a group. */
const fewest = 3;

/** Whether a call is shown as one line: it succeeded, and has no change and no picture that one would want to see. */
export function isFolded(row: ToolRow): boolean {
  if (row.state !== "done" || imagesIn(row.output).length > 0) return false;
  const { kind } = kindOf(row.name, row.input);
  return kind === "look" || kind === "command" || kind === "agent" || kind === "other";
}

/** What a sub-agent did, and what the user was asked, must be easy to find again. */
function isGroupable(row: ToolRow): boolean {
  if (!isFolded(row) || row.inner.length > 0 || row.asked.length > 0) return false;
  return kindOf(row.name, row.input).kind !== "agent";
}

/** Replaces each run of folded calls by a group. */
export function grouped(rows: readonly Row[]): Row[] {
  const result: Row[] = [];
  let run: ToolRow[] = [];
  const close = () => {
    const [first] = run;
    if (first && run.length >= fewest) result.push(groupOf(first, run));
    else result.push(...run);
    run = [];
  };
  for (const row of rows) {
    if (row.kind === "tool" && isGroupable(row)) run.push(row);
    else {
      close();
      result.push(row);
    }
  }
  close();
  return result;
}

/** The last group that began with a call. An unchanged group remains the same object. */
const known = new WeakMap<ToolRow, GroupRow>();

function groupOf(first: ToolRow, calls: readonly ToolRow[]): GroupRow {
  const before = known.get(first);
  if (before?.calls.length === calls.length && before.calls.every((call, at) => call === calls[at])) return before;
  const { sequence, time, type } = first;
  const group: GroupRow = { key: groupKey(first), kind: "group", sequence, time, type, calls };
  known.set(first, group);
  return group;
}

/** Explored 4 files, searched 2 times, ran 1 command */
export function summaryOfGroup({ calls }: GroupRow): string {
  const files = new Set<string>();
  const counts = { searched: 0, fetched: 0, ran: 0, used: 0 };
  for (const call of calls) {
    const kind = kindOf(call.name, call.input);
    if (kind.kind === "command") counts.ran++;
    else if (kind.kind !== "look") counts.used++;
    else if (kind.verb === "Searched") counts.searched++;
    else if (kind.verb === "Fetched") counts.fetched++;
    else files.add(fileIn(call.input) ?? call.key);
  }
  const known = [
    some("explored", files.size, "file"),
    counts.searched === 1 ? "searched once" : some("searched", counts.searched, "time"),
    some("fetched", counts.fetched, "page"),
    some("ran", counts.ran, "command"),
  ].filter(Boolean);
  const rest = some("made", counts.used, known.length > 0 ? "other call" : "tool call");
  const text = [...known, rest].filter(Boolean).join(", ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function some(verb: string, count: number, thing: string): string {
  return count > 0 ? `${verb} ${counted(count, thing)}` : "";
}
