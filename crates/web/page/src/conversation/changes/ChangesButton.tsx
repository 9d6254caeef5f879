import { Counts } from "./Counts.tsx";
import { shownFromCalls, shownFromGit, totalsOf } from "./files.ts";
import type { KnownChanges } from "./useChanges.ts";

interface Props {
  readonly known: KnownChanges;
  readonly isOpen: boolean;
  readonly onClick: () => void;
}

/** How much has changed. Opens the list. Absent while nothing has changed. */
export function ChangesButton({ known: { git, called }, isOpen, onClick }: Props) {
  const fromGit = git?.source === "git" && git.files.length > 0;
  const totals = totalsOf(fromGit ? shownFromGit(git.files) : shownFromCalls(called));
  if (totals.files === 0 && !isOpen) return null;
  return (
    <button
      type="button"
      className="button changes-button"
      aria-expanded={isOpen}
      title="Files that the agent has changed (F)"
      data-testid="changes-button"
      onClick={onClick}
    >
      <span className="unseen">Changes: </span>
      <Counts totals={totals} />
    </button>
  );
}
