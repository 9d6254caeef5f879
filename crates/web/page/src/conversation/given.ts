// What a tool was given, taken apart: what is read as code, and each of the other fields.
import { languageOf } from "../markdown/highlight.tsx";
import { asText } from "./text.ts";

export interface Given {
  /** The name of the field. */
  readonly name: string;
  readonly text: string;
  readonly language?: string | undefined;
}

/** What tells most, to be read as code; and under which names it stands in the input. */
export interface Main extends Omit<Given, "name"> {
  readonly names: readonly string[];
}

type Fields = Readonly<Record<string, unknown>>;

export function mainOf(input: unknown): Main | undefined {
  if (typeof input === "string") {
    // The beginning of an object that was cut, or free text.
    const language = /^\s*[[{]/.test(input) ? "json" : undefined;
    return input ? { names: [], text: input, language } : undefined;
  }
  const fields = fieldsOf(input);
  const { command, content } = fields;
  if (typeof command === "string") return { names: ["command"], text: command, language: "bash" };
  const { old_string: before, new_string: after } = fields;
  if (typeof before === "string" && typeof after === "string")
    return { names: ["old_string", "new_string"], text: changeOf(before, after), language: "diff" };
  const path = pathIn(fields);
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

export function pathIn(fields: Fields): string | undefined {
  const path = [fields.file_path, fields.path].find((value) => typeof value === "string" && value);
  return typeof path === "string" ? path : undefined;
}

export function fieldsOf(input: unknown): Fields {
  return typeof input === "object" && input !== null ? (input as Fields) : {};
}

function shownOf(value: unknown): Omit<Given, "name"> {
  // What is empty would look like something that is not there.
  if (typeof value === "string") return { text: value || '""' };
  return { text: value === null ? "null" : JSON.stringify(value, null, 2), language: "json" };
}

/** A replacement of text in a file, as the lines that go and the lines that come. */
function changeOf(before: string, after: string): string {
  // An end of line that only one of them has is a part of the change.
  const alike = [before, after].every((text) => !text || text.endsWith("\n"));
  const lines = (text: string) => (text ? (alike ? text.slice(0, -1) : text).split("\n") : []);
  return [...lines(before).map((line) => `- ${line}`), ...lines(after).map((line) => `+ ${line}`)].join("\n");
}

/** So much of a field is told in one line. */
const shortLength = 160;

/** The beginning of a field, in one line. */
export function inShort(value: unknown): string {
  const text = typeof value === "object" ? JSON.stringify(value) : asText(value);
  const line = text.replace(/\s+/g, " ");
  return line.length > shortLength ? `${line.slice(0, shortLength)}…` : line;
}

/** Control characters, and those that have no width or that turn the direction of what follows. */
const unseen =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** A text in which nothing hides, and nothing stands elsewhere than it will be read. */
export function unhidden(text: string): string {
  return text.replace(unseen, (letter) => `\\u{${(letter.codePointAt(0) ?? 0).toString(16)}}`);
}
