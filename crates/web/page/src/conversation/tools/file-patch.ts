// Reads patches: unified diffs, and the form of Codex's `apply_patch`.
import { type Diff, type Line, textOfLine } from "./diff.ts";

/** The part of a patch about one file. */
export interface FilePatch {
  readonly path: string;
  readonly oldPath?: string | undefined;
  readonly status: "added" | "modified" | "deleted" | "renamed";
  readonly added: number;
  readonly removed: number;
  /** The lines after the header of the file. */
  readonly lines: readonly string[];
}

const statuses = { Update: "modified", Add: "added", Delete: "deleted" } as const;

/** The files of a patch, in their order. */
export function filesOfPatch(text: string): FilePatch[] {
  const files: Reading[] = [];
  let file: Reading | undefined;
  const begin = (path: string, status: FilePatch["status"]) => {
    file = { path, status, lines: [], left: undefined };
    files.push(file);
  };
  const lines = text.replace(/\n$/, "").split("\n");
  lines.forEach((line, at) => {
    if (file && isInHunk(file, line)) return;
    const own = /^\*\*\* (?:(Update|Add|Delete) File: )?(.+)$/.exec(line);
    const moved = /^\*\*\* Move to: (.+)$/.exec(line)?.[1];
    const git = /^diff --git "?a\/(.*?)"? "?b\/(.*?)"?$/.exec(line);
    if (moved !== undefined && file) Object.assign(file, { oldPath: file.path, path: moved, status: "renamed" });
    else if (/^\*\*\* (Begin Patch|End Patch|End of File)/.test(line)) return;
    else if (own?.[2]) begin(own[2], statuses[own[1] as keyof typeof statuses] ?? "modified");
    else if (git?.[2]) begin(git[2], "modified");
    else if (line.startsWith("--- ") && lines[at + 1]?.startsWith("+++ ")) names(line, lines[at + 1] ?? "", begin, file);
    else if (file) headerOrLine(file, line);
  });
  return files.map(({ left: _, ...read }) => ({ ...read, ...countsOf(read.lines) }));
}

interface Reading {
  path: string;
  oldPath?: string;
  status: FilePatch["status"];
  lines: string[];
  /** The lines of a hunk that are still to come, in the old file and in the new one. */
  left: [number, number] | undefined;
}

/** Takes a line of a hunk whose length its header says. So a removed line `-- x` is not taken for a header. */
function isInHunk(file: Reading, line: string): boolean {
  const { left } = file;
  if (!left || (left[0] <= 0 && left[1] <= 0)) return false;
  if (!/^[-+ \\]/.test(line) && line !== "") return false;
  if (!line.startsWith("+") && !line.startsWith("\\")) left[0]--;
  if (!line.startsWith("-") && !line.startsWith("\\")) left[1]--;
  file.lines.push(line);
  return true;
}

function names(before: string, after: string, begin: (path: string, status: FilePatch["status"]) => void, file?: Reading) {
  // The names follow the line `diff --git`, which has them already.
  if (file && file.lines.length === 0) return;
  const nameOf = (line: string) => line.slice(4).split("\t")[0]?.replace(/^[ab]\//, "") ?? "";
  const [old, now] = [nameOf(before), nameOf(after)];
  begin(now === "/dev/null" ? old : now, now === "/dev/null" ? "deleted" : old === "/dev/null" ? "added" : "modified");
}

function headerOrLine(file: Reading, line: string): void {
  const hunk = hunkStart.exec(line);
  if (hunk) file.left = [Number(hunk[2] ?? 1), Number(hunk[4] ?? 1)];
  if (line.startsWith("new file mode")) file.status = "added";
  else if (line.startsWith("deleted file mode")) file.status = "deleted";
  else if (line.startsWith("rename from ")) Object.assign(file, { oldPath: line.slice(12), status: "renamed" });
  else if (!/^(\+\+\+ |index |similarity |rename to |old mode |new mode )/.test(line) || file.lines.length > 0)
    file.lines.push(line);
}

function countsOf(lines: readonly string[]): { added: number; removed: number } {
  const count = (mark: string) => lines.filter((line) => line.startsWith(mark)).length;
  return { added: count("+"), removed: count("-") };
}

const hunkStart = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/** One part of a file, with the numbers of its lines if the patch has them. */
export interface Hunk {
  readonly diff: Diff;
  readonly hasNumbers: boolean;
}

/** The parts of a file that a patch changes. Empty for a binary file, or if only the name or mode has changed. */
export function hunksOf({ lines }: FilePatch): Hunk[] {
  const hunks: { lines: Line[]; hasNumbers: boolean }[] = [];
  let [old, now] = [0, 0];
  for (const text of lines) {
    const start = hunkStart.exec(text);
    if (start || text.startsWith("@@")) {
      [old, now] = start ? [Number(start[1]) - 1, Number(start[3]) - 1] : [0, 0];
      hunks.push({ lines: [], hasNumbers: !!start });
      continue;
    }
    const mark = text === "" ? " " : text[0];
    if (mark !== " " && mark !== "-" && mark !== "+") continue;
    if (hunks.length === 0) hunks.push({ lines: [], hasNumbers: false });
    if (mark !== "+") old++;
    if (mark !== "-") now++;
    const pieces = [{ text: text.slice(1), isChanged: false }];
    const line: Line = { mark, pieces, number: mark === "-" ? old : now, ...(mark === " " && { oldNumber: old }) };
    hunks.at(-1)?.lines.push(line);
  }
  const number = (list: readonly Line[], mark: string) => list.filter((line) => line.mark === mark).length;
  return hunks.map(({ lines: list, hasNumbers }) => ({
    diff: { lines: list, added: number(list, "+"), removed: number(list, "-") },
    hasNumbers,
  }));
}

/** The content of a file that a patch adds. */
export function addedBy({ lines }: FilePatch): string {
  return lines.flatMap((line) => (line.startsWith("+") ? `${line.slice(1)}\n` : [])).join("");
}

/** The content after a patch. Undefined if the place of a change is not clear. */
export function changedBy(patch: FilePatch, content: string): string | undefined {
  // Each line has a line break before it, so that a place begins at the beginning of a line.
  let text = `\n${content}`;
  for (const { diff } of hunksOf(patch)) {
    const without = (mark: string) =>
      diff.lines.map((line) => (line.mark === mark ? "" : `${textOfLine(line)}\n`)).join("");
    const parts = text.split(`\n${without("+")}`);
    if (!without("+") || parts.length !== 2) return undefined;
    text = parts.join(`\n${without("-")}`);
  }
  return text.slice(1);
}
