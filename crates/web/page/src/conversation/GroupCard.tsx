import { type ReactNode, useState } from "react";

import { Icon } from "../ui/Icon.tsx";
import { summaryOfGroup } from "./groups.ts";
import { useIsKept, useKept } from "./kept.tsx";
import { type GroupRow, groupKey, type Row } from "./row.ts";

interface Props {
  readonly row: GroupRow;
  readonly renderCall: (call: Row) => ReactNode;
}

/** Calls that succeeded, as one line that opens. */
export function GroupCard({ row, renderCall }: Props) {
  // A group must not hide what the user has opened: a call, or the group before earlier calls were loaded into it.
  const isKept = useIsKept();
  const [wasOpened] = useState(() => row.calls.some((call) => isKept(`${call.key} open`) || isKept(`${groupKey(call)} open`)));
  const [open, setOpen] = useKept(`${row.key} open`, wasOpened);
  return (
    <div className="tool group" data-testid="tool-group">
      <button type="button" className="tool-head disclosure" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="chevron" />
        <span className="group-summary">{summaryOfGroup(row)}</span>
        <span className="tool-state" data-state="done">
          <Icon name="check" />
        </span>
      </button>
      {open && <div className="tool-inner">{row.calls.map(renderCall)}</div>}
    </div>
  );
}
