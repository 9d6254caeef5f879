import { Highlighted, languageOf } from "../markdown/highlight.tsx";
import { Clipped } from "./Clipped.tsx";

/** Lines of an input that are shown until somebody asks for the rest. */
const inputLines = 14;

/** The head of a card has one line. */
const summaryLength = 200;

/** What was given to the tool, in the form that is read most easily. */
export function ToolInput({ id, input }: { readonly id: string; readonly input: unknown }) {
  if (typeof input === "string") return input ? <Code id={id} text={input} language="json" /> : null;
  const command = field(input, "command");
  if (command !== undefined) return <Code id={id} text={command} language="bash" />;
  const path = field(input, "file_path") ?? field(input, "path") ?? "";
  const [before, after] = [field(input, "old_string"), field(input, "new_string")];
  if (before !== undefined && after !== undefined) return <Change id={id} before={before} after={after} />;
  const content = field(input, "content");
  if (content !== undefined && path) return <Code id={id} text={content} language={languageOf(path)} />;
  const rest = Object.keys(input ?? {}).length;
  // The head says it all already.
  if (rest === 0 || (rest === 1 && path)) return null;
  return <Code id={id} text={JSON.stringify(input, null, 2)} language="json" />;
}

/** What tells one call from another: the command, the file, or whatever comes first. */
export function summaryOf(input: unknown): string {
  if (typeof input !== "object" || input === null) return "";
  const named = ["description", "file_path", "path", "command", "pattern", "query", "url"];
  const first = named.map((name) => field(input, name)).find(Boolean);
  const any = first ?? Object.values(input).find((value) => typeof value === "string" && value);
  return (
    String(any ?? "")
      .split("\n", 1)[0]
      ?.slice(0, summaryLength) ?? ""
  );
}

function field(input: unknown, name: string): string | undefined {
  if (typeof input !== "object" || input === null) return undefined;
  const value = (input as Record<string, unknown>)[name];
  return typeof value === "string" ? value : undefined;
}

function Code({ id, text, language }: { id: string; text: string; language?: string | undefined }) {
  return (
    <Clipped id={`${id} input`} label="Input" text={text} lines={inputLines}>
      {(shown) => <Highlighted text={shown} language={language} />}
    </Clipped>
  );
}

/** A replacement of text in a file, as the lines that go and the lines that come. */
function Change({ id, before, after }: { id: string; before: string; after: string }) {
  const lines = [...linesOf(before).map((line) => `- ${line}`), ...linesOf(after).map((line) => `+ ${line}`)];
  return <Code id={id} text={lines.join("\n")} language="diff" />;
}

function linesOf(text: string): string[] {
  if (!text) return [];
  return text.replace(/\n$/, "").split("\n");
}
