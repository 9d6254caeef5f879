// Maps a tool call to what it does. The shape of the input decides if it is clear, and the name of the tool otherwise.
import { fieldsOf } from "../given.ts";
import { type Todo, todosIn } from "./todos.ts";

export interface Change {
  readonly before: string;
  readonly after: string;
}

export type ToolKind =
  | { readonly kind: "command"; readonly command: string }
  | { readonly kind: "edit"; readonly path: string; readonly changes: readonly Change[]; readonly isWhole: boolean }
  | { readonly kind: "patch"; readonly text: string }
  | { readonly kind: "todos"; readonly todos: readonly Todo[] }
  | { readonly kind: "plan"; readonly text: string }
  | { readonly kind: "look"; readonly verb: "Read" | "Searched" | "Listed" | "Fetched"; readonly what: string }
  | { readonly kind: "other" };

const patchStart = /^(\*\*\* Begin Patch|diff --git |--- \S.*\n\+\+\+ )/;

/** The names of tools that only look, in lower case and without separators. */
const looks: Readonly<Record<string, "Read" | "Searched" | "Listed" | "Fetched">> = {
  read: "Read",
  readfile: "Read",
  readmanyfiles: "Read",
  notebookread: "Read",
  grep: "Searched",
  glob: "Searched",
  search: "Searched",
  searchfilecontent: "Searched",
  grepsearch: "Searched",
  websearch: "Searched",
  googlewebsearch: "Searched",
  ls: "Listed",
  list: "Listed",
  listdirectory: "Listed",
  fetch: "Fetched",
  webfetch: "Fetched",
};

/** The kinds of calls, by their inputs. The same input has the same `Change` objects, so it is compared only once. */
const kinds = new WeakMap<object, { readonly name: string; readonly kind: ToolKind }>();

export function kindOf(name: string, input: unknown): ToolKind {
  if (typeof input !== "object" || input === null) return kindOfNew(name, input);
  const known = kinds.get(input);
  if (known?.name === name) return known.kind;
  const kind = kindOfNew(name, input);
  kinds.set(input, { name, kind });
  return kind;
}

function kindOfNew(name: string, input: unknown): ToolKind {
  if (typeof input === "string") return patchStart.test(input) ? { kind: "patch", text: input } : { kind: "other" };
  const fields = fieldsOf(input);
  const todos = todosIn(input);
  if (todos) return { kind: "todos", todos };
  const simple = name.toLowerCase().replace(/[^a-z]/g, "");
  if (simple === "exitplanmode" && typeof fields.plan === "string") return { kind: "plan", text: fields.plan };
  const patch = patchIn(input);
  if (patch) return { kind: "patch", text: patch };
  const edit = editIn(input);
  if (edit) return edit;
  const command = commandIn(fields.command);
  if (command) return { kind: "command", command };
  const verb = Object.hasOwn(looks, simple) ? looks[simple] : undefined;
  return verb ? { kind: "look", verb, what: lookedAt(input) } : { kind: "other" };
}

/** The file of a call. The agents name the field differently. */
export function fileIn(input: unknown): string | undefined {
  const fields = fieldsOf(input);
  return pathNames.map((name) => fields[name]).find((value): value is string => typeof value === "string" && value !== "");
}

const pathNames = ["file_path", "filePath", "absolute_path", "notebook_path", "path"];
const changeNames = ["old_string", "oldString", "oldText", "new_string", "newString", "newText"];

/** The names of the fields of which a diff and the path show everything. */
export function fieldsOfChange(input: unknown, path: string): string[] {
  const fields = fieldsOf(input);
  const names = pathNames.filter((name) => fields[name] === path);
  const one = changeIn(input);
  if (one) return [...names, ...changeNames.filter((name) => fields[name] === one.before || fields[name] === one.after)];
  if (!Array.isArray(fields.edits)) return [...names, "content"];
  const isAll = fields.edits.every((edit) => Object.keys(fieldsOf(edit)).every((name) => changeNames.includes(name)));
  return isAll ? [...names, "edits"] : names;
}

function commandIn(command: unknown): string | undefined {
  if (Array.isArray(command)) return command.every((word) => typeof word === "string") ? command.join(" ") : undefined;
  return typeof command === "string" ? command : undefined;
}

function editIn(input: unknown): ToolKind | undefined {
  const fields = fieldsOf(input);
  const path = fileIn(input);
  if (!path) return undefined;
  const one = changeIn(input);
  if (one) return { kind: "edit", path, changes: [one], isWhole: false };
  if (Array.isArray(fields.edits) && fields.edits.length > 0) {
    const changes = fields.edits.map(changeIn);
    const isKnown = changes.every((change) => change !== undefined);
    return isKnown ? { kind: "edit", path, changes, isWhole: false } : undefined;
  }
  if (typeof fields.content !== "string") return undefined;
  return { kind: "edit", path, changes: [{ before: "", after: fields.content }], isWhole: true };
}

function changeIn(value: unknown): Change | undefined {
  const fields = fieldsOf(value);
  const before = fields.old_string ?? fields.oldString ?? fields.oldText;
  const after = fields.new_string ?? fields.newString ?? fields.newText;
  return typeof before === "string" && typeof after === "string" ? { before, after } : undefined;
}

/** A patch as text: in a field, or one for each changed file. */
function patchIn(input: unknown): string | undefined {
  const fields = fieldsOf(input);
  for (const text of [fields.input, fields.patch, fields.patchText, fields.diff])
    if (typeof text === "string" && patchStart.test(text)) return text;
  if (!Array.isArray(fields.changes) || fields.changes.length === 0) return undefined;
  const parts = fields.changes.map((change) => {
    const { path, diff } = fieldsOf(change);
    return typeof path === "string" && typeof diff === "string" ? `*** ${path}\n${diff.replace(/\n$/, "")}` : undefined;
  });
  return parts.every((part) => part !== undefined) ? parts.join("\n") : undefined;
}

function lookedAt(input: unknown): string {
  const fields = fieldsOf(input);
  const wanted = [fields.pattern, fields.query, fields.url, fileIn(input), fields.prompt];
  return String(wanted.find((value) => typeof value === "string" && value) ?? "");
}
