// The files that an agent has changed, from its own tool calls. Works for every agent, also without a repository.
import { fieldsOf } from "../../content/given.ts";
import { type Change, isLooking, kindOf, type NamedChange, namedChangesIn, type ToolKind } from "../../content/kind.ts";
import type { Row, ToolRow } from "../row.ts";
import { diffOf } from "../tools/diff.ts";
import { addedBy, changedBy, type FilePatch, filesOfPatch } from "../tools/file-patch.ts";
import { type ReportedFile, reportedFiles } from "../tools/reported.ts";

/** One step of the way from the old file to the new one. */
export type Step = (
  | { readonly kind: "edit"; readonly change: Change; readonly isWhole: boolean; readonly isEverywhere: boolean }
  | { readonly kind: "patch"; readonly patch: FilePatch }
) & {
  /**
   * What the result of the call says, to be shown instead. The first step of a call has all of it, and its other steps an
   * empty list. A patch to copy is made from the call: some agents change the spaces in what they report.
   */
  readonly reported?: readonly ReportedFile[] | undefined;
};

export interface CalledFile {
  readonly path: string;
  readonly status: "added" | "modified" | "deleted" | "renamed";
  readonly oldPath?: string | undefined;
  /** Absent if a change is not known, or too large to be compared. */
  readonly added?: number | undefined;
  readonly removed?: number | undefined;
  readonly steps: readonly Step[];
  /** The content after the last step, if it is known. */
  readonly content?: string | undefined;
  /** Whether a call did not say how it has changed the file, so that a step is missing. */
  readonly isPart: boolean;
}

/** The calls that have changed files, in order, with those of sub-agents. */
export function changingCalls(rows: readonly Row[]): ToolRow[] {
  const calls: ToolRow[] = [];
  for (const row of rows) {
    if (row.kind === "group") for (const call of changingCalls(row.calls)) calls.push(call);
    if (row.kind === "tool") for (const call of changingCallsIn(row)) calls.push(call);
  }
  return calls;
}

const callsOfRows = new WeakMap<ToolRow, readonly ToolRow[]>();

/** A row remains the same object until it changes, so this is computed once for each. */
function changingCallsIn(row: ToolRow): readonly ToolRow[] {
  let calls = callsOfRows.get(row);
  if (!calls) {
    const own = row.state === "done" && isChanging(row) ? [row] : [];
    calls = [...own, ...changingCalls(row.inner)];
    callsOfRows.set(row, calls);
  }
  return calls;
}

function isChanging({ name, input }: ToolRow): boolean {
  const { kind } = kindOf(name, input);
  if (kind === "edit") return !isLooking(name);
  return kind === "patch" || namedChangesIn(input).length > 0;
}

/** The files of these calls, sorted by path. `cwd` is left out of the paths. */
export function filesOfCalls(calls: readonly ToolRow[], cwd: string): CalledFile[] {
  const files = new Map<string, Building>();
  const shorten = (path: string) => (path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path);
  for (const row of calls) {
    const { name, input } = row;
    const kind = kindOf(name, input);
    const reported = reportedFiles(row);
    if (kind.kind === "patch")
      for (const patch of patchesOf(kind)) {
        const same = reported.filter((file) => shorten(file.patch.path) === shorten(patch.path));
        addPatch(files, { kind: "patch", patch, ...(same.length > 0 && { reported: same }) }, shorten);
      }
    for (const change of namedChangesIn(input)) addNamed(fileAt(files, shorten(change.path)), change);
    if (kind.kind !== "edit" || isLooking(name)) continue;
    const file = fileAt(files, shorten(kind.path));
    kind.changes.forEach((change, at) => {
      const shown = reported.length > 0 ? (at === 0 ? reported : []) : undefined;
      const isEverywhere = fieldsOf(input).replace_all === true;
      addChange(file, { kind: "edit", change, isWhole: kind.isWhole, isEverywhere, reported: shown });
    });
  }
  return [...files.values()].map(finished).sort((a, b) => (a.path < b.path ? -1 : 1));
}

const patchesOfKinds = new WeakMap<ToolKind, readonly FilePatch[]>();

/** The same objects for the same call, so that a patch is read only once. */
function patchesOf(kind: Extract<ToolKind, { kind: "patch" }>): readonly FilePatch[] {
  let patches = patchesOfKinds.get(kind);
  if (!patches) {
    patches = filesOfPatch(kind.text);
    patchesOfKinds.set(kind, patches);
  }
  return patches;
}

interface Building {
  path: string;
  status: CalledFile["status"];
  oldPath?: string | undefined;
  /** The content, if a call has written all of it. */
  content?: string | undefined;
  steps: Step[];
  isPart: boolean;
}

function fileAt(files: Map<string, Building>, path: string): Building {
  const known = files.get(path);
  if (known) return known;
  const file: Building = { path, status: "modified", steps: [], isPart: false };
  files.set(path, file);
  return file;
}

function addChange(file: Building, step: Extract<Step, { kind: "edit" }>): void {
  const { change, isWhole, isEverywhere, reported } = step;
  if (isWhole) {
    // If the result does not say whether the file existed before the first write, it is usually a new one.
    if (isNew(file) && !reported?.some(({ patch }) => patch.status === "modified")) file.status = "added";
    if (file.status === "deleted") file.status = "modified";
    const before = file.content;
    if (before === change.after) return;
    file.content = change.after;
    file.steps.push({ ...step, change: before === undefined ? change : replaced(before, change), isEverywhere: false });
    return;
  }
  const isFirst = change.before === "" && (isNew(file) || file.status === "deleted");
  if (file.status === "deleted") file.status = "modified";
  else if (isFirst) file.status = "added";
  const parts = change.before ? file.content?.split(change.before) : undefined;
  if (parts && parts.length > 1)
    file.content = isEverywhere ? parts.join(change.after) : [parts[0], parts.slice(1).join(change.before)].join(change.after);
  else file.content = isFirst ? change.after : undefined;
  file.steps.push(step);
}

function addNamed(file: Building, { status }: NamedChange): void {
  if (isNew(file) || status === "deleted") file.status = status;
  else if (file.status === "deleted") file.status = "modified";
  file.isPart = true;
  file.content = undefined;
}

/** Whether nothing is known about the file yet. */
function isNew({ steps, isPart }: Building): boolean {
  return steps.length === 0 && !isPart;
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

function addPatch(files: Map<string, Building>, step: Extract<Step, { kind: "patch" }>, shorten: (path: string) => string): void {
  const { patch } = step;
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
  } else if (isNew(file) || patch.status === "deleted") file.status = patch.status;
  else if (file.status === "deleted") file.status = "modified";
  if (patch.status === "added") file.content = addedBy(patch);
  else if (patch.status === "deleted") file.content = undefined;
  else file.content = file.content === undefined ? undefined : changedBy(patch, file.content);
  file.steps.push(step);
}

function finished({ path, status, oldPath, steps, content, isPart }: Building): CalledFile {
  let [added, removed] = [0, 0];
  let isCounted = !isPart;
  for (const step of steps) {
    for (const counts of countsOf(step)) {
      if (!counts) isCounted = false;
      added += counts?.added ?? 0;
      removed += counts?.removed ?? 0;
    }
  }
  return { path, status, oldPath, steps, content, isPart, ...(isCounted && { added, removed }) };
}

/** The numbers of lines in each part of a step. Undefined if the part is too large to be compared. */
function countsOf(step: Step): readonly (Pick<FilePatch, "added" | "removed"> | undefined)[] {
  if (step.reported) return step.reported.map(({ patch }) => patch);
  return [step.kind === "patch" ? step.patch : diffOf(step.change)];
}

/**
 * The steps in the form that `apply_patch` of Codex reads. It needs no line numbers, which the calls do not have. A file
 * whose steps this form cannot express is left out; `isPart` then says so.
 */
export function patchOfCalls(files: readonly CalledFile[]): { text: string; isPart: boolean } {
  const parts = files.map(patchOfFile);
  const text = ["*** Begin Patch", ...parts.flatMap((part) => part ?? []), "*** End Patch", ""].join("\n");
  return { text, isPart: parts.includes(undefined) };
}

function patchOfFile({ path, status, oldPath, steps, content, isPart }: CalledFile): string[] | undefined {
  if (status === "deleted") return [`*** Delete File: ${path}`];
  if (content !== undefined) {
    const added = [`*** Add File: ${path}`, ...marked("+", content)];
    return status === "added" ? added : [`*** Delete File: ${oldPath ?? path}`, ...added];
  }
  // An update needs a file that exists, all of the steps, and one place for each of them.
  const isWritten = steps.some((step) => step.kind === "edit" && (step.isWhole || step.isEverywhere));
  if (status === "added" || isPart || isWritten) return undefined;
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
