import { useContext } from "react";

import { Icon } from "../../ui/Icon.tsx";
import { useKept } from "../kept.tsx";
import type { NoticeRow } from "../row.ts";
import { NewestTodos, todosOf } from "./newest-todos.ts";
import { progressOf, Todos } from "./Todos.tsx";

/** The plan of an agent that reports it by itself, and not by a tool call. */
export function TodoNotice({ row }: { readonly row: NoticeRow }) {
  const newest = useContext(NewestTodos);
  const [open, setOpen] = useKept(`${row.key} open`, newest === undefined || newest === row.key);
  const todos = todosOf(row) ?? [];
  return (
    <div className="tool">
      <button type="button" className="tool-head disclosure" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="chevron" />
        <span className="tool-name">To-do list</span>
        <span className="tool-summary">{progressOf(todos)}</span>
      </button>
      {open && <Todos todos={todos} />}
    </div>
  );
}
