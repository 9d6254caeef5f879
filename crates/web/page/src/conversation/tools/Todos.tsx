import type { Todo } from "../../content/todos.ts";
import { Icon } from "../../ui/Icon.tsx";
import { Inline } from "./Inline.tsx";

const states = { open: "to do", active: "in progress", done: "done" } as const;

export function Todos({ todos }: { readonly todos: readonly Todo[] }) {
  return (
    <ul className="todos" aria-label="To-do list">
      {todos.map(({ text, state }, index) => (
        <li key={index} data-state={state}>
          <span className="todo-mark" role="img" aria-label={states[state]}>
            {state === "done" && <Icon name="check" />}
          </span>
          <span>
            <Inline text={text} />
          </span>
        </li>
      ))}
    </ul>
  );
}

/** 3 of 5 */
export function progressOf(todos: readonly Todo[]): string {
  return `${todos.filter(({ state }) => state === "done").length} of ${todos.length}`;
}
