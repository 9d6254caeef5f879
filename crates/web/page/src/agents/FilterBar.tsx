import type { Agent } from "@tokenrail/client";

import { Icon } from "../ui/Icon.tsx";
import { type Chip, type Filter, chips, labelOf, valuesOf } from "./filter.ts";

interface Props {
  readonly agents: readonly Agent[];
  readonly filter: Filter;
  readonly onChange: (filter: Filter) => void;
}

/** Filters the list by words. */
export function WordsFilter({ filter, onChange }: Omit<Props, "agents">) {
  return (
    <search>
      <label className="field-with-icon">
        <Icon name="search" />
        <input
          type="search"
          placeholder="Filter"
          title="Filter by name, prompt, type, status or id"
          aria-label="Filter agents"
          value={filter.words}
          onChange={(event) => onChange({ ...filter, words: event.target.value })}
        />
      </label>
    </search>
  );
}

/** Filters the list by the values that its agents have. */
export function Chips({ agents, filter, onChange }: Props) {
  return (
    <div className="chips">
      {(Object.keys(chips) as Chip[]).map((chip) => (
        <ChipSelect
          key={chip}
          chip={chip}
          values={valuesOf(chip, agents, filter[chip])}
          chosen={filter[chip]}
          onChange={(value) => onChange({ ...filter, [chip]: value })}
        />
      ))}
    </div>
  );
}

interface ChipProps {
  readonly chip: Chip;
  readonly values: readonly string[];
  readonly chosen: string;
  readonly onChange: (value: string) => void;
}

/** One value would filter nothing. */
function ChipSelect({ chip, values, chosen, onChange }: ChipProps) {
  if (values.length < 2 && !chosen) return null;
  return (
    <select
      className="chip"
      aria-label={`Filter by ${chips[chip].toLowerCase()}`}
      title={chosen || undefined}
      data-testid={`filter-${chip}`}
      data-chosen={chosen !== "" || undefined}
      value={chosen}
      onChange={(event) => onChange(event.target.value)}
    >
      <option value="">{chips[chip]}</option>
      {values.map((value) => (
        <option key={value} value={value}>
          {chip === "folder" ? labelOf(value, values) : value}
        </option>
      ))}
    </select>
  );
}
