import { applyEvents, emptyTranscript } from "@tokenrail/client";
import { render } from "@testing-library/react";

import { Folder } from "../src/conversation/folder.ts";
import { KeepOpen } from "../src/conversation/kept.tsx";
import type { Row } from "../src/conversation/row.ts";
import { rowsOf } from "../src/conversation/rows.ts";
import { RowView } from "../src/conversation/RowView.tsx";
import { Among } from "../src/conversation/tools/places.ts";
import type { Told } from "./events.ts";

export function rowsAfter(told: Told): Row[] {
  return rowsOf(applyEvents(emptyTranscript, told.events).items);
}

/** Shows all rows, as the list does, of an agent that works in a folder. */
export function showRows(told: Told, folder = "") {
  const rows = rowsAfter(told);
  return render(
    <Folder value={folder}>
      <KeepOpen>
        <Among value={{ current: rows }}>
          {rows.map((row) => (
            <RowView key={row.key} row={row} plain={false} />
          ))}
        </Among>
      </KeepOpen>
    </Folder>,
  );
}
