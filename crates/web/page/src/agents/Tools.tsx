import type { Agent } from "@tokenrail/client";
import { type Ref, useState } from "react";

import type { IconName } from "../ui/Icon.tsx";
import { IconButton } from "../ui/IconButton.tsx";
import { type Filter, chipped } from "./filter.ts";
import { Chips, WordsFilter } from "./FilterBar.tsx";

interface Props {
  /** The button that begins and ends a selection. */
  readonly ref: Ref<HTMLButtonElement>;
  /** Whether an action with the selected agents runs. */
  readonly busy: boolean;
  readonly archived: boolean;
  readonly onArchived: (archived: boolean) => void;
  readonly selecting: boolean;
  /** Absent if there is nothing to select. */
  readonly onSelecting: ((selecting: boolean) => void) | undefined;
  readonly agents: readonly Agent[];
  readonly filter: Filter;
  /** Absent if there are too few agents for a filter. */
  readonly onFilter: ((filter: Filter) => void) | undefined;
}

/** One line above the list: its filter, and what concerns the whole list. Further filters are behind a button. */
export function Tools({ ref, busy, archived, onArchived, selecting, onSelecting, agents, filter, onFilter }: Props) {
  const [wantsChips, setWantsChips] = useState(false);
  // A filter that hides agents is always seen.
  const hasChips = wantsChips || chipped(filter);
  return (
    <div className="filters">
      <div className="list-tools">
        {onFilter && <WordsFilter filter={filter} onChange={onFilter} />}
        {onFilter && (
          <ListButton
            icon="filter"
            id="filters"
            name="More filters"
            disabled={chipped(filter)}
            expanded={hasChips}
            onClick={() => setWantsChips(!wantsChips)}
          />
        )}
        <ListButton icon="archive" id="filter-archived" name="Archived" pressed={archived} onClick={() => onArchived(!archived)} />
        {onSelecting && (
          <ListButton
            ref={ref}
            icon="select"
            id="select"
            name="Select"
            disabled={busy}
            pressed={selecting}
            onClick={() => onSelecting(!selecting)}
          />
        )}
      </div>
      {onFilter && hasChips && <Chips agents={agents} filter={filter} onChange={onFilter} />}
    </div>
  );
}

interface ButtonProps {
  readonly ref?: Ref<HTMLButtonElement>;
  readonly icon: IconName;
  readonly id: string;
  readonly name: string;
  readonly disabled?: boolean;
  readonly pressed?: boolean;
  readonly expanded?: boolean;
  readonly onClick: () => void;
}

function ListButton({ ref, icon, id, name, disabled = false, pressed, expanded, onClick }: ButtonProps) {
  return (
    <IconButton
      icon={icon}
      ref={ref}
      name={name}
      title={name}
      disabled={disabled}
      aria-pressed={pressed}
      aria-expanded={expanded}
      data-testid={id}
      onClick={onClick}
    />
  );
}
