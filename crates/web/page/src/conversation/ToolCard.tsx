import { type ReactNode, useContext, useMemo } from "react";

import { kindOf } from "../content/kind.ts";
import { nameOf } from "../content/name.ts";
import { duration } from "../ui/format.ts";
import { Icon } from "../ui/Icon.tsx";
import { surveyOf } from "./answers.ts";
import { Folder } from "./folder.ts";
import { grouped, isFolded } from "./groups.ts";
import { useKept } from "./kept.tsx";
import type { Row, ToolRow, ToolState } from "./row.ts";
import { Settled } from "./Settled.tsx";
import { ToolInput } from "./ToolInput.tsx";
import { ToolOutput } from "./ToolOutput.tsx";
import { HeadFacts, summaryOfCall } from "./tools/Head.tsx";
import { NewestTodos, newestTodos } from "./tools/newest-todos.ts";
import { Among, useLatest } from "./tools/places.ts";

const states: Record<ToolState, string> = {
  writing: "in preparation",
  running: "running",
  waiting: "needs you",
  done: "done",
  failed: "failed",
  rejected: "rejected",
  expired: "not answered in time",
  stopped: "no result",
};

/** A shorter time would be shown as 0.0 s. */
const leastMs = 50;

interface Props {
  readonly row: ToolRow;
  readonly renderInner: (row: Row) => ReactNode;
}

/** A tool call: its input, its result, and the messages of its sub-agent. */
export function ToolCard({ row, renderInner }: Props) {
  const [open, setOpen] = useKept(`${row.key} open`, isOpenAtFirst(row, useContext(NewestTodos)));
  return (
    <div
      className="tool"
      role="group"
      data-state={row.state}
      data-testid="tool-card"
      aria-label={`Tool ${row.name}: ${states[row.state]}`}
    >
      <button type="button" className="tool-head disclosure" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="chevron" />
        <span className="tool-name" title={row.name} data-tool={row.name}>
          {nameOf(row.name)}
        </span>
        <span className="tool-summary">{summaryOfCall(row, useContext(Folder))}</span>
        <HeadFacts row={row} />
        {row.took !== undefined && leastMs <= row.took && <span className="fact took">{duration(row.took)}</span>}
        <ToolStateMark state={row.state} />
      </button>
      {open && (
        <div className="tool-body">
          {/* The questions and answers below say the same in words. */}
          {!row.asked.some(({ question }) => surveyOf(question)) && (
            <ToolInput row={row} />
          )}
          {row.asked.map(({ key, question }) => (
            <Settled key={key} question={question} />
          ))}
          {row.inner.length > 0 && (
            <div className="tool-inner" role="group" aria-label="Sub-agent" data-testid="sub-agent">
              <Inner rows={row.inner} renderInner={renderInner} />
            </div>
          )}
          <ToolOutput row={row} />
        </div>
      )}
    </div>
  );
}

/** What a sub-agent said and did. */
function Inner({ rows, renderInner }: { readonly rows: readonly Row[]; readonly renderInner: Props["renderInner"] }) {
  const newest = useMemo(() => newestTodos(rows), [rows]);
  const among = useLatest(rows);
  return (
    <Among value={among}>
      <NewestTodos value={newest}>{grouped(rows).map(renderInner)}</NewestTodos>
    </Among>
  );
}

/** Calls that succeeded are folded, and to-do lists if there is a newer one. Failures and changes of files stay open. */
function isOpenAtFirst(row: ToolRow, newest: string | undefined): boolean {
  if (row.state !== "done" && row.state !== "writing" && row.state !== "running" && row.state !== "waiting") return true;
  const { kind } = kindOf(row.name, row.input);
  if (kind === "todos") return newest === undefined || newest === row.key;
  return (kind !== "look" || row.state === "done") && !isFolded(row);
}

function ToolStateMark({ state }: { readonly state: ToolState }) {
  const busy = state === "writing" || state === "running";
  return (
    <span className="tool-state" data-state={state}>
      {busy ? <span className="spinner" aria-hidden="true" /> : <Icon name={state === "done" ? "check" : "cross"} />}
      {/* The mark says it already. */}
      <span className={state === "done" ? "unseen" : undefined}>{states[state]}</span>
    </span>
  );
}
