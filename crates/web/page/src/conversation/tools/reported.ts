// The patch that an agent reports with the result of a call: what it has changed, with the numbers of the lines.
import type { ToolRow } from "../row.ts";
import { type Diff, withWords } from "./diff.ts";
import { type FilePatch, filesOfPatch, hunksOf } from "./file-patch.ts";

/** A file that a call has changed. */
export interface ReportedFile {
  readonly patch: FilePatch;
  /** The parts that were changed, with marks at the changed words. The numbers of their lines are those of the file. */
  readonly diffs: readonly Diff[];
}

const known = new WeakMap<ToolRow, readonly ReportedFile[]>();

/** The files that a call has changed. Empty until the result is there, and if the agent does not report them. */
export function reportedFiles(row: ToolRow): readonly ReportedFile[] {
  let files = known.get(row);
  if (!files) {
    files = row.state === "done" && row.patch ? filesOfPatch(row.patch).flatMap(reported) : [];
    known.set(row, files);
  }
  return files;
}

/** A file of which no line can be shown is left out. */
function reported(patch: FilePatch): ReportedFile[] {
  const hunks = hunksOf(patch);
  if (hunks.length === 0 || !hunks.every(({ hasNumbers }) => hasNumbers)) return [];
  return [{ patch, diffs: hunks.map(({ diff }) => ({ ...diff, lines: withWords(diff.lines) })) }];
}

/** The changes of all files, in the order in which they are shown. */
export function reportedDiffs(row: ToolRow): readonly Diff[] {
  return reportedFiles(row).flatMap(({ diffs }) => diffs);
}
