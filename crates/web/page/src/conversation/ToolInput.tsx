import { Highlighted } from "../markdown/highlight.tsx";
import { Clipped } from "./Clipped.tsx";
import { fieldsOf, inShort, mainOf, othersIn, pathIn } from "./given.ts";

/** Lines of an input that are shown until somebody asks for the rest. */
export const inputLines = 14;

/** The head of a card has one line. */
const summaryLength = 200;

/** What was given to the tool, in the form that is read most easily. */
export function ToolInput({ id, input }: { readonly id: string; readonly input: unknown }) {
  const main = mainOf(input);
  if (main)
    return (
      <>
        <Code id={id} text={main.text} language={main.language} />
        <Others input={input} names={othersIn(input, main).map(({ name }) => name)} />
      </>
    );
  // Some tools take a number, or true or false.
  if (typeof input === "number" || typeof input === "boolean") return <Code id={id} text={String(input)} language="json" />;
  const names = Object.keys(input ?? {});
  // The head says it all already.
  if (names.length === 0 || (names.length === 1 && pathIn(fieldsOf(input)))) return null;
  return <Code id={id} text={JSON.stringify(input, null, 2)} language="json" />;
}

/** What else was given, in short. The event has it whole. */
function Others({ input, names }: { readonly input: unknown; readonly names: readonly string[] }) {
  const fields = fieldsOf(input);
  const summary = summaryOf(input);
  const others = names.filter((name) => fields[name] !== summary);
  if (others.length === 0) return null;
  return (
    <dl className="others">
      {others.map((name) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{inShort(fields[name])}</dd>
        </div>
      ))}
    </dl>
  );
}

/** What tells one call from another: the command, the file, or whatever comes first. */
export function summaryOf(input: unknown): string {
  if (typeof input === "number" || typeof input === "boolean") return String(input);
  const fields = typeof input === "string" ? { input } : fieldsOf(input);
  const named = ["description", "file_path", "path", "command", "pattern", "query", "url"];
  const texts = [...named.map((name) => fields[name]), ...Object.values(fields)];
  const first = texts.find((value) => typeof value === "string" && value);
  return (
    String(first ?? "")
      .split("\n", 1)[0]
      ?.slice(0, summaryLength) ?? ""
  );
}

function Code({ id, text, language }: { id: string; text: string; language?: string | undefined }) {
  return (
    <Clipped id={`${id} input`} label="Input" text={text} lines={inputLines}>
      {(shown) => <Highlighted text={shown} language={language} />}
    </Clipped>
  );
}
