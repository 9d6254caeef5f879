import { Icon } from "../../ui/Icon.tsx";
import { useKept } from "../kept.tsx";
import type { Row } from "../row.ts";
import { Inline } from "./Inline.tsx";
import { todosOf } from "./newest-todos.ts";
import { progressOf, Todos } from "./Todos.tsx";

/** What the agent is working on: its newest to-do list, as one line that opens. Finished lists are not shown. */
export function PinnedTodos({ rows, newest }: { readonly rows: readonly Row[]; readonly newest: string | undefined }) {
  const [open, setOpen] = useKept("pinned to-do list open", false);
  const row = newest === undefined ? undefined : rows.findLast(({ key }) => key === newest);
  const todos = row && todosOf(row);
  if (!todos || todos.every(({ state }) => state === "done")) return null;
  const now = todos.find(({ state }) => state === "active") ?? todos.find(({ state }) => state === "open");
  return (
    <section className="pinned-todos" data-testid="pinned-todos" aria-label="Progress">
      {open && <Todos todos={todos} />}
      <button type="button" className="disclosure" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="chevron" />
        <strong>{progressOf(todos)}</strong>
        <span className="tool-summary">{now && <Inline text={now.text} />}</span>
      </button>
    </section>
  );
}
