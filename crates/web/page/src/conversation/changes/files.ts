// The list of the panel: what is shown of each file, wherever it comes from.
import type { ChangedFile } from "@tokenrail/client";

import type { CalledFile, Step } from "./called.ts";

export interface ShownFile {
  /** Identifies the file in the list. */
  readonly key: string;
  readonly path: string;
  readonly oldPath?: string | undefined;
  readonly status: "added" | "modified" | "deleted" | "renamed" | "untracked";
  readonly added?: number | undefined;
  readonly removed?: number | undefined;
  readonly isBinary: boolean;
  /** The changes, if they come from calls. Git's are loaded when the user opens the file. */
  readonly steps?: readonly Step[] | undefined;
}

export function shownFromGit(files: readonly ChangedFile[]): ShownFile[] {
  return files.map(({ binary, ...file }) => ({ ...file, key: `git ${file.status} ${file.path}`, isBinary: binary }));
}

export function shownFromCalls(files: readonly CalledFile[]): ShownFile[] {
  return files.map((file) => ({ ...file, key: `calls ${file.path}`, isBinary: false }));
}

export interface Totals {
  readonly files: number;
  readonly added: number;
  readonly removed: number;
  /** Whether there are more files, which the list does not have. */
  readonly isMore: boolean;
}

export function totalsOf(files: readonly Pick<ShownFile, "added" | "removed">[], isMore: boolean): Totals {
  const sum = (name: "added" | "removed") => files.reduce((total, file) => total + (file[name] ?? 0), 0);
  return { files: files.length, added: sum("added"), removed: sum("removed"), isMore };
}
