import { memo, type Ref } from "react";

import { Counts } from "./Counts.tsx";
import type { KnownChanges } from "./useChanges.ts";

interface Props {
  readonly ref: Ref<HTMLButtonElement>;
  readonly known: KnownChanges;
  readonly isOpen: boolean;
  readonly onClick: () => void;
}

/** How much has changed. Opens the list. Absent while nothing has changed. */
export const ChangesButton = memo(function ChangesButton({ ref, known: { called, isFromGit, totals }, isOpen, onClick }: Props) {
  if (totals.files === 0 && !isOpen) return null;
  // Git also sees what others have changed. Without a change of its own, the agent must not seem to have made them.
  const areOthers = isFromGit && called.length === 0;
  return (
    <button
      type="button"
      ref={ref}
      className="button changes-button"
      aria-expanded={isOpen}
      title={areOthers ? "Changed files in the repository (F): changed by commands or by others, not by the agent's editing tools" : "Changed files (F)"}
      data-source={areOthers ? "others" : undefined}
      data-testid="changes-button"
      onClick={onClick}
    >
      {areOthers ? <span>Repository: </span> : <span className="unseen">Changes: </span>}
      <Counts totals={totals} />
    </button>
  );
});
