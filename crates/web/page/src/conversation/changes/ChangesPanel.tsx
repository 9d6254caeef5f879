import { memo, type ReactNode, type RefObject, useEffect, useId, useRef, useState } from "react";

import { counted } from "../../ui/format.ts";
import { IconButton } from "../../ui/IconButton.tsx";
import { phone, useMedia } from "../../ui/media.ts";
import { SheetDialog } from "../../ui/SheetDialog.tsx";
import { Trouble } from "../../ui/Trouble.tsx";
import { type Layout, roomForSplit, useIsWide, useLayout } from "../tools/layout.ts";
import { CopyPatch } from "./CopyPatch.tsx";
import { Counts } from "./Counts.tsx";
import { FileEntry } from "./FileEntry.tsx";
import type { ShownFile } from "./files.ts";
import type { KnownChanges } from "./useChanges.ts";

/** All files are in the list if there are no more than this. The user can request the rest. */
const shownFiles = 300;

interface Props {
  readonly agentId: string;
  readonly known: KnownChanges;
  /** Called when the list has closed. */
  readonly onClose: () => void;
}

/** The files that the agent has changed: beside the conversation, or as a sheet on a small screen. */
export const ChangesPanel = memo(function ChangesPanel(props: Props) {
  const isSmall = useMedia(phone);
  const hasRoom = useMedia(roomForSplit);
  const [chosen] = useLayout();
  const title = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  if (isSmall)
    return (
      <Sheet ref={dialog} title={title} onClose={props.onClose}>
        <Content {...props} title={title} onClose={() => dialog.current?.close()} />
      </Sheet>
    );
  return (
    <aside className="changes" aria-labelledby={title} data-testid="changes" data-layout={hasRoom ? chosen : "unified"}>
      <Content {...props} title={title} hasRoom={hasRoom} />
    </aside>
  );
});

interface SheetProps {
  readonly ref: RefObject<HTMLDialogElement | null>;
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

function Sheet({ ref: dialog, title, onClose, children }: SheetProps) {
  useEffect(() => dialog.current?.showModal(), [dialog]);
  return (
    <SheetDialog ref={dialog} className="changes" title={title} testId="changes" onClose={onClose}>
      {children}
    </SheetDialog>
  );
}

interface ContentProps extends Props {
  readonly title: string;
  /** Whether the list can become wide enough for two columns. */
  readonly hasRoom?: boolean;
}

function Content({ agentId, known, onClose, title, hasRoom = false }: ContentProps) {
  const { called, choose, files, isFromGit, totals } = known;
  const head = useRef<HTMLDivElement>(null);
  const isWide = useIsWide(head);
  const canSplit = isWide || hasRoom;
  const [chosen, setLayout] = useLayout();
  const layout = canSplit ? chosen : "unified";
  return (
    <>
      <div className="changes-head" ref={head}>
        <h2 id={title}>Changes</h2>
        <Counts totals={totals} />
        <IconButton icon="replay" name="Refresh" title="Refresh" aria-busy={known.isAsking} onClick={known.refresh} />
        <IconButton icon="close" name="Close the changes" title="Close (F)" onClick={onClose} />
      </div>
      <div className="changes-tools">
        {choose && (
          <Choice
            name="Source"
            options={["Repository", "Agent's edits"]}
            chosen={isFromGit ? 0 : 1}
            onChoose={(at) => choose(at === 1 ? "calls" : "git")}
          />
        )}
        {canSplit && (
          <Choice
            name="Layout"
            options={["Unified", "Split"]}
            chosen={layout === "split" ? 1 : 0}
            onChoose={(at) => setLayout(at === 1 ? "split" : "unified")}
          />
        )}
        {files.length > 0 && <CopyPatch agentId={agentId} called={isFromGit ? undefined : called} />}
      </div>
      {known.error && <Trouble error={known.error} onRetry={known.refresh} />}
      <p className="hint" title={known.git?.source === "git" ? `Since commit ${known.git.base.slice(0, 8)}` : undefined}>
        {explained(known)}
      </p>
      <Files agentId={agentId} files={files} layout={layout} version={known.version} />
      {totals.isMore && (
        <p className="hint">There are more files. The server lists only the first {counted(files.length, "file")}.</p>
      )}
    </>
  );
}

/** Where the list comes from, and what it does not show. */
function explained({ git, called, isFromGit }: KnownChanges): string {
  if (git?.source === "git" && isFromGit) {
    if (git.files.length === 0) return `Nothing differs from the commit at the start of turn ${git.turn}.`;
    return `All differences from the commit at the start of turn ${git.turn}. They include changes by others, and changes that were not yet committed when that turn started.`;
  }
  if (called.length === 0) return "The agent has made no edits with its editing tools. Changes made by its commands are not listed.";
  return "Changes made with the agent's editing tools. Changes made by its commands are not listed.";
}

interface FilesProps {
  readonly agentId: string;
  readonly files: readonly ShownFile[];
  readonly layout: Layout;
  readonly version: number;
}

function Files({ agentId, files, layout, version }: FilesProps) {
  const [all, setAll] = useState(false);
  const shown = all ? files : files.slice(0, shownFiles);
  return (
    <>
      <ul className="changed-files" data-testid="changed-files">
        {shown.map((file) => (
          <FileEntry key={file.key} agentId={agentId} file={file} layout={layout} version={version} />
        ))}
      </ul>
      {shown.length < files.length && (
        <button type="button" className="more" onClick={() => setAll(true)}>
          Show {counted(files.length - shown.length, "more file")}
        </button>
      )}
    </>
  );
}

interface ChoiceProps {
  readonly name: string;
  readonly options: readonly [string, string];
  readonly chosen: 0 | 1;
  readonly onChoose: (at: 0 | 1) => void;
}

function Choice({ name, options, chosen, onChoose }: ChoiceProps) {
  return (
    <div className="changes-choice" role="group" aria-label={name}>
      {options.map((option, at) => (
        <button
          key={option}
          type="button"
          className="button"
          aria-pressed={chosen === at}
          onClick={() => onChoose(at === 0 ? 0 : 1)}
        >
          {option}
        </button>
      ))}
    </div>
  );
}
