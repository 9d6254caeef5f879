// What an agent has changed: the parameters and the patch. The list of files is in the generated types.
import { blob } from "./rest.js";

export interface ChangesQuery {
  /**
   * Compares with the commit that `HEAD` named when this turn started. Default: the first turn that started in a git
   * repository.
   */
  turn?: number | undefined;
  signal?: AbortSignal | undefined;
}

export interface PatchQuery extends ChangesQuery {
  /** Only this file: its `path` and `oldPath` in the list of changes. Default: all files. */
  file?: { path: string; oldPath?: string | undefined } | undefined;
}

/** A unified diff. */
export interface Patch {
  text: string;
  /** Whether files are left out because of a limit of the server. */
  truncated: boolean;
}

export async function patchOf(response: Response, signal: AbortSignal | undefined): Promise<Patch> {
  const text = await (await blob(response, signal)).text();
  return { text, truncated: response.headers.get("Tokenrail-Truncated") === "true" };
}
