import { Fragment, useRef } from "react";

import { languageOf } from "../../markdown/highlight.tsx";
import { useShortPath } from "../folder.ts";
import type { ToolRow } from "../row.ts";
import { DiffView, LayoutSwitch } from "./DiffView.tsx";
import type { FilePatch } from "./file-patch.ts";
import { useIsWide, useLayout } from "./layout.ts";
import { reportedDiffs, reportedFiles } from "./reported.ts";

/** What a call has changed, as its result says, with the numbers of the lines. */
export function ReportedDiff({ row }: { readonly row: ToolRow }) {
  const frame = useRef<HTMLDivElement>(null);
  const [layout] = useLayout();
  const canSplit = useIsWide(frame);
  const files = reportedFiles(row);
  const order = reportedDiffs(row);
  return (
    <div className="edit" ref={frame}>
      {canSplit && <LayoutSwitch />}
      {files.map(({ patch, diffs }, at) => (
        <Fragment key={at}>
          {files.length > 1 && <FileName patch={patch} />}
          {diffs.map((diff) => (
            <DiffView
              key={order.indexOf(diff)}
              id={`${row.key} diff ${order.indexOf(diff)}`}
              diff={diff}
              place={0}
              language={languageOf(patch.path)}
              layout={canSplit ? layout : "unified"}
            />
          ))}
        </Fragment>
      ))}
    </div>
  );
}

/** The name of one of several files. */
function FileName({ patch: { path, oldPath, status } }: { readonly patch: FilePatch }) {
  const [old, now] = [useShortPath(oldPath ?? ""), useShortPath(path)];
  return (
    <p className="hint">
      {old && `${old} → `}
      {now}
      {(status === "added" || status === "deleted") && ` (${status})`}
    </p>
  );
}
