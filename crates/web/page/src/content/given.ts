// Splits the input of a tool into the part that is shown as code and the other fields.
import { languageOf } from "../markdown/highlight.tsx";
import { asText } from "./text.ts";

export interface Given {
  /** The name of the field. */
  readonly name: string;
  readonly text: string;
  readonly language?: string | undefined;
}

/** The most important part of the input, shown as code, and the names of its fields. */
export interface Main extends Omit<Given, "name"> {
  readonly names: readonly string[];
}

type Fields = Readonly<Record<string, unknown>>;

export function mainOf(input: unknown): Main | undefined {
  if (typeof input === "string") {
    // The input is free text, or the beginning of an object that was cut off.
    const language = /^\s*[[{]/.test(input) ? "json" : undefined;
    return input ? { names: [], text: input, language } : undefined;
  }
  const fields = fieldsOf(input);
  const { command, content } = fields;
  if (typeof command === "string") return { names: ["command"], text: command, language: "bash" };
  const change = changeIn(fields);
  if (change) return { names: change.names, text: changeOf(change.before, change.after), language: "diff" };
  const path = fileIn(fields);
  if (typeof content === "string" && path) return { names: ["content"], text: content, language: languageOf(path) };
  return undefined;
}

/** The other fields, each as text. */
export function othersIn(input: unknown, main: Main | undefined): Given[] {
  if (typeof input === "string" || input === null || input === undefined) return [];
  if (typeof input !== "object" || Array.isArray(input)) return [{ name: "input", ...shownOf(input) }];
  const names = Object.keys(input).filter((name) => !main?.names.includes(name));
  return names.map((name) => ({ name, ...shownOf(fieldsOf(input)[name]) }));
}

// The agents name the same fields differently. The first name that a call has counts.
const pathNames = ["file_path", "filePath", "absolute_path", "notebook_path", "path"];
const oldNames = ["old_string", "oldString", "oldText"];
const newNames = ["new_string", "newString", "newText"];

/** The file of a call. */
export function fileIn(input: unknown): string | undefined {
  const name = pathNameIn(input);
  return name === undefined ? undefined : String(fieldsOf(input)[name]);
}

/** The name of the field with the file of a call. */
export function pathNameIn(input: unknown): string | undefined {
  const fields = fieldsOf(input);
  return pathNames.find((name) => typeof fields[name] === "string" && fields[name] !== "");
}

/** The old and the new text of a change, and the names of the two fields that have them. */
export function changeIn(input: unknown): { before: string; after: string; names: readonly [string, string] } | undefined {
  const fields = fieldsOf(input);
  const first = (names: readonly string[]) => names.find((name) => fields[name] !== undefined && fields[name] !== null) ?? "";
  const names = [first(oldNames), first(newNames)] as const;
  const [before, after] = names.map((name) => fields[name]);
  return typeof before === "string" && typeof after === "string" ? { before, after, names } : undefined;
}

export function fieldsOf(input: unknown): Fields {
  return typeof input === "object" && input !== null ? (input as Fields) : {};
}

function shownOf(value: unknown): Omit<Given, "name"> {
  // An empty value would look like a missing one.
  if (typeof value === "string") return { text: value || '""' };
  return { text: value === null ? "null" : JSON.stringify(value, null, 2), language: "json" };
}

/** A replacement in a file, as removed and added lines. */
function changeOf(before: string, after: string): string {
  // If only one of the texts ends with a line break, the line break is a part of the change.
  const alike = [before, after].every((text) => !text || text.endsWith("\n"));
  const lines = (text: string) => (text ? (alike ? text.slice(0, -1) : text).split("\n") : []);
  return [...lines(before).map((line) => `- ${line}`), ...lines(after).map((line) => `+ ${line}`)].join("\n");
}

/** The maximum length of a field in one line. */
const shortLength = 160;

/** The beginning of a field, in one line. */
export function inShort(value: unknown): string {
  const text = typeof value === "object" ? JSON.stringify(value) : asText(value);
  const line = text.replace(/\s+/g, " ");
  return line.length > shortLength ? `${line.slice(0, shortLength)}…` : line;
}

/** Control characters, and characters without a width or that change the direction of the text after them. */
const unseen =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** Shows hidden characters as escapes, so that the text contains exactly what the user sees, in that order. */
export function unhidden(text: string): string {
  return text.replace(unseen, (letter) => `\\u{${(letter.codePointAt(0) ?? 0).toString(16)}}`);
}
