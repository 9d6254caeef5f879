import { useTokenrail } from "@tokenrail/client/react";
import { memo, useEffect, useState } from "react";

import { languageOf } from "../../markdown/highlight.tsx";
import { Icon } from "../../ui/Icon.tsx";
import { Trouble } from "../../ui/Trouble.tsx";
import { useKept } from "../kept.tsx";
import { diffOf } from "../tools/diff.ts";
import { DiffView } from "../tools/DiffView.tsx";
import { filesOfPatch, type Hunk, hunksOf } from "../tools/file-patch.ts";
import type { Layout } from "../tools/layout.ts";
import type { Step } from "./called.ts";
import { LineCounts } from "./Counts.tsx";
import type { ShownFile } from "./files.ts";

const marks = { added: "A", modified: "M", deleted: "D", renamed: "R", untracked: "U" } as const;

interface Props {
  readonly agentId: string;
  readonly file: ShownFile;
  readonly layout: Layout;
  /** Git's answer to which the file belongs. */
  readonly version: number;
}

/** One file of the list. Its diff is folded. */
export const FileEntry = memo(function FileEntry({ agentId, file, layout, version }: Props) {
  const [open, setOpen] = useKept(`changes ${file.key}`, false);
  const { path, oldPath, status, added, removed } = file;
  return (
    <li className="changed-file">
      <button
        type="button"
        className="disclosure changed-file-head"
        aria-expanded={open}
        title={oldPath ? `${oldPath} → ${path}` : path}
        onClick={() => setOpen(!open)}
      >
        <Icon name="chevron" />
        <span className="file-status" data-status={status}>
          <span aria-hidden="true">{marks[status]}</span>
          <span className="unseen">{status}</span>
        </span>
        <bdi className="file-path">
          {oldPath && <span className="file-old">{oldPath} → </span>}
          {path}
        </bdi>
        <span className="counts">
          {added !== undefined && removed !== undefined ? (
            <LineCounts added={added} removed={removed} />
          ) : file.isBinary ? (
            "binary"
          ) : null}
        </span>
      </button>
      {open && (file.steps ? (
        <Hunks id={file.key} path={path} hunks={file.steps.flatMap(hunksOfStep)} layout={layout} />
      ) : (
        <GitDiff agentId={agentId} file={file} layout={layout} version={version} />
      ))}
    </li>
  );
});

function hunksOfStep(step: Step): Hunk[] {
  if (step.reported) return step.reported.flatMap(({ diffs }) => diffs.map((diff) => ({ diff, hasNumbers: true })));
  if (step.kind === "patch") return hunksOf(step.patch);
  const diff = diffOf(step.change);
  return diff ? [{ diff, hasNumbers: step.isWhole }] : [];
}

/** Git's diff of one file, loaded when it is opened, and again when git has been asked again. */
function GitDiff({ agentId, file, layout, version }: Props) {
  const client = useTokenrail();
  const [loaded, setLoaded] = useState<{ hunks?: readonly Hunk[]; truncated?: boolean; error?: Error }>();
  const { path, oldPath } = file;
  useEffect(() => {
    const leaving = new AbortController();
    client.patch(agentId, { file: { path, oldPath }, signal: leaving.signal }).then(
      ({ text, truncated }) => setLoaded({ hunks: filesOfPatch(text).flatMap(hunksOf), truncated }),
      (error: Error) => !leaving.signal.aborted && setLoaded({ error }),
    );
    return () => leaving.abort();
  }, [client, agentId, path, oldPath, version]);
  if (!loaded) return <p className="hint">Loading…</p>;
  if (loaded.error) return <Trouble error={loaded.error} />;
  if (loaded.truncated) return <p className="hint">The diff of this file is too large to show.</p>;
  return <Hunks id={file.key} path={path} hunks={loaded.hunks ?? []} layout={layout} />;
}

interface HunksProps {
  readonly id: string;
  readonly path: string;
  readonly hunks: readonly Hunk[];
  readonly layout: Layout;
}

function Hunks({ id, path, hunks, layout }: HunksProps) {
  if (hunks.length === 0) return <p className="hint">No lines to show.</p>;
  // One of the two columns would be empty.
  const isOneSided = [" -", " +"].some((marks) => hunks.every(({ diff }) => diff.lines.every(({ mark }) => !marks.includes(mark))));
  return hunks.map(({ diff, hasNumbers }, at) => (
    <DiffView
      key={at}
      id={`${id} ${at}`}
      diff={diff}
      place={hasNumbers ? 0 : undefined}
      language={languageOf(path)}
      layout={isOneSided ? "unified" : layout}
      label={`Changes to ${path}, ${at + 1} of ${hunks.length}`}
    />
  ));
}
