import { fieldsOf } from "./given.ts";

export interface Todo {
  readonly text: string;
  readonly state: "open" | "active" | "done";
}

/** The lists of the values that were read, or `null`. */
const known = new WeakMap<object, readonly Todo[] | null>();

/** The to-do list in an input or a notice. The same value has the same list, so it is read only once. */
export function todosIn(value: unknown): readonly Todo[] | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  let todos = known.get(value);
  if (todos === undefined) {
    todos = todosInNew(value) ?? null;
    known.set(value, todos);
  }
  return todos ?? undefined;
}

/** The agents name the fields of the list differently. The app server of Codex reports a whole message. */
function todosInNew(value: object): readonly Todo[] | undefined {
  const fields = fieldsOf(value);
  const list = [fields.todos, fields.plan, fields.entries, fields.items, fieldsOf(fields.params).plan].find(Array.isArray);
  if (!list || list.length === 0) return undefined;
  const todos = list.map(todoOf);
  return todos.every((todo) => todo !== undefined) ? todos : undefined;
}

function todoOf(value: unknown): Todo | undefined {
  const fields = fieldsOf(value);
  const { status, completed } = fields;
  const text = [fields.content, fields.step, fields.text, fields.description].find((each) => typeof each === "string");
  if (typeof text !== "string" || (typeof status !== "string" && typeof completed !== "boolean")) return undefined;
  if (completed === true || status === "completed") return { text, state: "done" };
  return { text, state: status === "in_progress" || status === "inProgress" ? "active" : "open" };
}
