// Maps a tool call to what it does. The shape of the input decides if it is clear, and the name of the tool otherwise.
import { changeIn, fieldsOf, fileIn, pathNameIn } from "./given.ts";
import { type Todo, todosIn } from "./todos.ts";

export interface Change {
  readonly before: string;
  readonly after: string;
}

export type ToolKind =
  | { readonly kind: "command"; readonly command: string }
  | EditKind
  | CellKind
  | { readonly kind: "patch"; readonly text: string }
  | { readonly kind: "todos"; readonly todos: readonly Todo[] }
  | { readonly kind: "plan"; readonly text: string }
  | LookKind
  | AgentKind
  | { readonly kind: "other" };

export interface EditKind {
  readonly kind: "edit";
  readonly path: string;
  readonly changes: readonly Change[];
  /** Whether the whole file is written, so that the numbers of its lines are known. */
  readonly isWhole: boolean;
  /** The names of the fields of which the path and the changes show everything. Any other field may have an effect too. */
  readonly shown: readonly string[];
}

/** A cell of a notebook gets a new text. The call does not have the old one. */
export interface CellKind {
  readonly kind: "cell";
  readonly path: string;
  readonly source: string;
  readonly language: string;
  /** The names of the fields from which these are. */
  readonly shown: readonly string[];
}

export interface LookKind {
  readonly kind: "look";
  readonly verb: "Read" | "Searched" | "Listed" | "Fetched";
  readonly what: string;
  /** Whether it looks at the web. `what` is then a URL or a query. */
  readonly isWeb: boolean;
}

/** A call that starts a sub-agent. */
export interface AgentKind {
  readonly kind: "agent";
  readonly title: string;
  /** The type of the sub-agent, or an empty text. */
  readonly type: string;
  readonly prompt: string;
  /** The names of the fields from which these are. */
  readonly shown: readonly string[];
}

const patchStart = /^(\*\*\* Begin Patch|diff --git |--- \S.*\n\+\+\+ )/;

/** The names of tools that only look, in lower case and without separators. */
const looks: Readonly<Record<string, LookKind["verb"]>> = {
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
  searchweb: "Searched",
  googlewebsearch: "Searched",
  ls: "Listed",
  list: "Listed",
  listdirectory: "Listed",
  fetch: "Fetched",
  fetchurl: "Fetched",
  webfetch: "Fetched",
};

/** The names of tools that search the web. All that fetch use it too. */
const webSearches = ["websearch", "searchweb", "googlewebsearch"];

/** The names of tools that start a sub-agent: those of Claude Code and opencode, of Codex, and of Gemini CLI. */
const agentTools = ["task", "agent", "spawnagent", "delegatetoagent", "invokeagent", "codebaseinvestigator"];

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
  const simple = simpleOf(name);
  if (simple === "exitplanmode" && typeof fields.plan === "string") return { kind: "plan", text: fields.plan };
  const patch = patchIn(input);
  if (patch) return { kind: "patch", text: patch };
  const edit = editIn(input) ?? cellIn(fields);
  if (edit) return edit;
  const agent = agentIn(simple, fields);
  if (agent) return agent;
  const command = commandIn(fields.command);
  if (command) return { kind: "command", command };
  const verb = Object.hasOwn(looks, simple) ? looks[simple] : undefined;
  if (!verb) return { kind: "other" };
  const isWeb = verb === "Fetched" || webSearches.includes(simple);
  return { kind: "look", verb, what: isWeb ? lookedUp(input) : lookedAt(input), isWeb };
}

function commandIn(command: unknown): string | undefined {
  if (Array.isArray(command)) return command.every((word) => typeof word === "string") ? command.join(" ") : undefined;
  return typeof command === "string" ? command : undefined;
}

function editIn(input: unknown): EditKind | undefined {
  const { edits, content } = fieldsOf(input);
  const [path, pathName] = [fileIn(input), pathNameIn(input)];
  if (path === undefined || pathName === undefined) return undefined;
  const edit = (changes: readonly Change[], names: readonly string[], isWhole = false): EditKind => {
    const pairs = changes.map(({ before, after }) => ({ before, after }));
    return { kind: "edit", path, changes: pairs, isWhole, shown: [pathName, ...names] };
  };
  const one = changeIn(input);
  if (one) return edit([one], one.names);
  if (Array.isArray(edits) && edits.length > 0) {
    const changes = edits.map(changeIn);
    if (!changes.every((change) => change !== undefined)) return undefined;
    // If an edit has another field, its two texts do not show everything.
    const isAll = edits.every((each) => Object.keys(fieldsOf(each)).length === 2);
    return edit(changes, isAll ? ["edits"] : []);
  }
  return typeof content === "string" ? edit([{ before: "", after: content }], ["content"], true) : undefined;
}

function cellIn({ notebook_path: path, new_source: source, cell_type: type }: Readonly<Record<string, unknown>>): CellKind | undefined {
  if (typeof path !== "string" || typeof source !== "string") return undefined;
  const language = type === "markdown" ? "markdown" : "python";
  return { kind: "cell", path, source, language, shown: ["notebook_path", "new_source"] };
}

function agentIn(simple: string, fields: Readonly<Record<string, unknown>>): AgentKind | undefined {
  const named = (...names: string[]) => names.find((name) => typeof fields[name] === "string" && fields[name] !== "");
  const type = named("subagent_type", "subagentType", "agent_type", "agent_name");
  const prompt = named("prompt", "objective", "message");
  if (prompt === undefined || (!agentTools.includes(simple) && !(type && "description" in fields))) return undefined;
  const title = named("description", "title");
  const text = (name: string | undefined) => (name === undefined ? "" : String(fields[name]));
  const shown = [title, type, prompt].filter((name) => name !== undefined);
  return { kind: "agent", title: text(title), type: text(type), prompt: text(prompt), shown };
}

/** A patch as text: in a field, or one for each changed file. */
function patchIn(input: unknown): string | undefined {
  const fields = fieldsOf(input);
  for (const text of [fields.input, fields.patch, fields.patchText, fields.diff])
    if (typeof text === "string" && patchStart.test(text)) return text;
  if (!Array.isArray(fields.changes) || fields.changes.length === 0) return undefined;
  const parts = fields.changes.map(patchOfFile);
  return parts.every((part) => part !== undefined) ? parts.join("\n") : undefined;
}

function patchOfFile(change: unknown): string | undefined {
  const { path, diff } = fieldsOf(change);
  if (typeof path !== "string" || typeof diff !== "string") return undefined;
  const text = diff.replace(/\n$/, "");
  const { type, moved } = changeKindIn(change);
  // Of a file that is added or deleted, the lines may be there without marks.
  const marked = (mark: string) => (!text || /^(@@ |--- )/.test(text) || text.startsWith(mark) ? text : text.replace(/^/gm, mark));
  if (type === "add") return `*** Add File: ${path}\n${marked("+")}`;
  if (type === "delete") return `*** Delete File: ${path}\n${marked("-")}`;
  return [`*** ${path}`, ...(moved === undefined ? [] : [`*** Move to: ${moved}`]), text].join("\n");
}

/** A file that a call has changed, if the call does not say how. */
export interface NamedChange {
  readonly path: string;
  readonly status: "added" | "modified" | "deleted";
}

const namedStatuses: ReadonlyMap<unknown, NamedChange["status"]> = new Map([
  ["add", "added"],
  ["update", "modified"],
  ["delete", "deleted"],
]);

/** The files of a call that has their names but not all of their lines, such as those of Codex. */
export function namedChangesIn(input: unknown): NamedChange[] {
  const { changes } = fieldsOf(input);
  if (!Array.isArray(changes) || patchIn(input) !== undefined) return [];
  const named = changes.map((change): NamedChange | undefined => {
    const { path } = fieldsOf(change);
    const status = namedStatuses.get(changeKindIn(change).type);
    return typeof path === "string" && status ? { path, status } : undefined;
  });
  return named.every((change) => change !== undefined) ? named : [];
}

function changeKindIn(change: unknown): { type: unknown; moved: string | undefined } {
  const { kind } = fieldsOf(change);
  const { type, move_path: moved } = typeof kind === "string" ? { type: kind } : fieldsOf(kind);
  return { type, moved: typeof moved === "string" ? moved : undefined };
}

/** Whether a tool with this name only looks, whatever its input looks like. */
export function isLooking(name: string): boolean {
  return Object.hasOwn(looks, simpleOf(name));
}

function simpleOf(name: string): string {
  return name.toLowerCase().replace(/[^a-z]/g, "");
}

function lookedAt(input: unknown): string {
  const fields = fieldsOf(input);
  const wanted = [fields.pattern, fields.query, fields.url, fileIn(input), fields.prompt];
  return String(wanted.find((value) => typeof value === "string" && value) ?? "");
}

/** The URL or the query of a call that uses the web. Gemini writes the URLs into a prompt. */
function lookedUp(input: unknown): string {
  const { url, urls, query, prompt } = fieldsOf(input);
  const [first]: unknown[] = Array.isArray(urls) ? urls : [];
  const asked = typeof prompt === "string" ? prompt : undefined;
  // A full stop or a comma after a URL is not a part of it.
  const inPrompt = asked && (/https?:\/\/[^\s<>"')\]]*[^\s<>"')\].,;:!?]/.exec(asked)?.[0] ?? asked);
  return String([url, first, query, inPrompt].find((value) => typeof value === "string" && value) ?? "");
}
