import { Icon } from "../../ui/Icon.tsx";
import { useKept } from "../kept.tsx";
import type { Row } from "../row.ts";
import { progressOf, Todos } from "./Todos.tsx";
import { newestTodosIn } from "./todos.ts";

/** What the agent is working on: its newest to-do list, as one line that opens. Finished lists are not shown. */
export function PinnedTodos({ rows }: { readonly rows: readonly Row[] }) {
  const [open, setOpen] = useKept("pinned to-do list open", false);
  const todos = newestTodosIn(rows);
  if (!todos || todos.every(({ state }) => state === "done")) return null;
  const now = todos.find(({ state }) => state === "active") ?? todos.find(({ state }) => state === "open");
  return (
    <section className="pinned-todos" data-testid="pinned-todos" aria-label="Progress">
      {open && <Todos todos={todos} />}
      <button type="button" className="disclosure" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="chevron" />
        <strong>{progressOf(todos)}</strong>
        <span className="tool-summary">{now?.text}</span>
      </button>
    </section>
  );
}
