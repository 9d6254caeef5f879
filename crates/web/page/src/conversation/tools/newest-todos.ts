import { createContext } from "react";

import { type Todo, todosIn } from "../../content/todos.ts";
import type { Row } from "../row.ts";

/** The row with the newest to-do list of an agent. Earlier lists are folded. */
export const NewestTodos = createContext<string | undefined>(undefined);

export function newestTodos(rows: readonly Row[]): string | undefined {
  return rows.findLast((row) => todosOf(row) !== undefined)?.key;
}

export function todosOf(row: Row): readonly Todo[] | undefined {
  if (row.kind === "tool") return todosIn(row.input);
  return row.kind === "notice" && row.name === "todo_list" ? todosIn(row.data) : undefined;
}
