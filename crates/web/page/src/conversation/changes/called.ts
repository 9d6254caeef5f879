// The files that an agent has changed, from its own tool calls. Works for every agent, also without a repository.
import { diffOf } from "../tools/diff.ts";
import { type Change, kindOf } from "../tools/kind.ts";
import { fieldsOf } from "../given.ts";
import type { Row, ToolRow } from "../row.ts";
import { type FilePatch, filesOfPatch } from "./patch.ts";

/** One step of the way from the old file to the new one. */
export type Step =
  | { readonly kind: "edit"; readonly change: Change; readonly isWhole: boolean }
  | { readonly kind: "patch"; readonly patch: FilePatch };

export interface CalledFile {
  readonly path: string;
  readonly status: "added" | "modified" | "deleted" | "renamed";
  readonly oldPath?: string | undefined;
  /** Absent if a change is too large to be compared. */
  readonly added?: number | undefined;
  readonly removed?: number | undefined;
  readonly steps: readonly Step[];
}

/** The calls that have changed files, in order, with those of sub-agents. */
export function changingCalls(rows: readonly Row[]): ToolRow[] {
  const calls: ToolRow[] = [];
  for (const row of rows) {
    if (row.kind === "group") calls.push(...changingCalls(row.calls));
    if (row.kind !== "tool") continue;
    if (row.state === "done" && isChanging(row)) calls.push(row);
    if (row.inner.length > 0) calls.push(...changingCalls(row.inner));
  }
  return calls;
}

function isChanging({ name, input }: ToolRow): boolean {
  const { kind } = kindOf(name, input);
  return kind === "edit" || kind === "patch";
}

/** Names of tools that do something else with a path and a content. */
const looking = /^(read|grep|glob|ls|search|todo)/i;

/** The files of these calls, sorted by path. `cwd` is left out of the paths. */
export function filesOfCalls(calls: readonly ToolRow[], cwd: string): CalledFile[] {
  const files = new Map<string, Building>();
  const shorten = (path: string) => (path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path);
  for (const { name, input } of calls) {
    const kind = kindOf(name, input);
    if (kind.kind === "patch") for (const patch of filesOfPatch(kind.text)) addPatch(files, patch, shorten);
    if (kind.kind !== "edit" || looking.test(name)) continue;
    const file = fileAt(files, shorten(kind.path));
    for (const change of kind.changes) addChange(file, change, kind.isWhole, fieldsOf(input).replace_all === true);
  }
  return [...files.values()].map(finished).sort((a, b) => (a.path < b.path ? -1 : 1));
}

interface Building {
  path: string;
  status: CalledFile["status"];
  oldPath?: string | undefined;
  /** The content, if a call has written all of it. */
  content?: string | undefined;
  steps: Step[];
}

function fileAt(files: Map<string, Building>, path: string): Building {
  const known = files.get(path);
  if (known) return known;
  const file: Building = { path, status: "modified", steps: [] };
  files.set(path, file);
  return file;
}

function addChange(file: Building, change: Change, isWhole: boolean, isAll: boolean): void {
  if (isWhole) {
    // Whether the file existed before the first write is not known, but it is usually a new one.
    if (file.steps.length === 0) file.status = "added";
    const before = file.content;
    if (before === change.after) return;
    file.content = change.after;
    file.steps.push({ kind: "edit", change: before === undefined ? change : replaced(before, change), isWhole: true });
    return;
  }
  if (file.status === "deleted") file.status = "modified";
  if (change.before === "" && file.steps.length === 0) file.status = "added";
  const parts = change.before ? file.content?.split(change.before) : undefined;
  if (parts && parts.length > 1)
    file.content = isAll ? parts.join(change.after) : [parts[0], parts.slice(1).join(change.before)].join(change.after);
  else file.content = undefined;
  file.steps.push({ kind: "edit", change, isWhole: false });
}

const rewrites = new WeakMap<Change, Change>();

/** The same object for the same change, so that it is compared only once. */
function replaced(before: string, change: Change): Change {
  let rewrite = rewrites.get(change);
  if (rewrite?.before !== before) {
    rewrite = { before, after: change.after };
    rewrites.set(change, rewrite);
  }
  return rewrite;
}

function addPatch(files: Map<string, Building>, patch: FilePatch, shorten: (path: string) => string): void {
  const path = shorten(patch.path);
  const oldPath = patch.oldPath === undefined ? undefined : shorten(patch.oldPath);
  const moved = oldPath === undefined ? undefined : files.get(oldPath);
  if (moved && oldPath !== undefined) {
    files.delete(oldPath);
    files.set(path, { ...moved, path });
  }
  const file = fileAt(files, path);
  if (oldPath !== undefined && file.status !== "added") {
    file.status = "renamed";
    file.oldPath ??= oldPath;
  } else if (file.steps.length === 0 || patch.status === "deleted") file.status = patch.status;
  file.content = undefined;
  file.steps.push({ kind: "patch", patch });
}

function finished({ path, status, oldPath, steps }: Building): CalledFile {
  let [added, removed] = [0, 0];
  let isCounted = true;
  for (const step of steps) {
    const counts = step.kind === "patch" ? step.patch : diffOf(step.change);
    if (!counts) isCounted = false;
    added += counts?.added ?? 0;
    removed += counts?.removed ?? 0;
  }
  return { path, status, oldPath, steps, ...(isCounted && { added, removed }) };
}

/** The steps in the form that `apply_patch` of Codex reads. It needs no line numbers, which the calls do not have. */
export function patchOfCalls(files: readonly CalledFile[]): string {
  return ["*** Begin Patch", ...files.flatMap(patchOfFile), "*** End Patch", ""].join("\n");
}

function patchOfFile({ path, status, oldPath, steps }: CalledFile): string[] {
  if (status === "deleted") return [`*** Delete File: ${path}`];
  if (status === "added") {
    const [only] = steps;
    const change = steps.length === 1 && only?.kind === "edit" ? only.change : undefined;
    if (change && change.before === "") return [`*** Add File: ${path}`, ...marked("+", change.after)];
  }
  const moved = oldPath === undefined ? [] : [`*** Move to: ${path}`];
  return [`*** Update File: ${oldPath ?? path}`, ...moved, ...steps.flatMap(linesOf)];
}

function linesOf(step: Step): string[] {
  if (step.kind === "patch") return step.patch.lines.filter((line) => /^[-+ @]/.test(line));
  return ["@@", ...marked("-", step.change.before), ...marked("+", step.change.after)];
}

function marked(mark: string, text: string): string[] {
  return text ? text.replace(/\n$/, "").split("\n").map((line) => mark + line) : [];
}
