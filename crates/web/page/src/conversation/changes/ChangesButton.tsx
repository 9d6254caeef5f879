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
export const ChangesButton = memo(function ChangesButton({ ref, known: { totals }, isOpen, onClick }: Props) {
  if (totals.files === 0 && !isOpen) return null;
  return (
    <button
      type="button"
      ref={ref}
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
});
