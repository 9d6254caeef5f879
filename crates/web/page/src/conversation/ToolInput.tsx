import { Highlighted } from "../markdown/highlight.tsx";
import { Clipped } from "./Clipped.tsx";
import { fieldsOf, inShort, mainOf, othersIn, pathIn } from "./given.ts";

/** Lines of an input that are shown until the user requests the rest. */
export const inputLines = 14;

/** The header of a card has one line. */
const summaryLength = 200;

/** The input of a tool, in the form that is easiest to read. */
export function ToolInput({ id, input }: { readonly id: string; readonly input: unknown }) {
  const main = mainOf(input);
  if (main)
    return (
      <>
        <Code id={id} text={main.text} language={main.language} />
        <Others input={input} names={othersIn(input, main).map(({ name }) => name)} />
      </>
    );
  // Some tools have a number or a boolean as input.
  if (typeof input === "number" || typeof input === "boolean") return <Code id={id} text={String(input)} language="json" />;
  const names = Object.keys(input ?? {});
  // The header already shows everything.
  if (names.length === 0 || (names.length === 1 && pathIn(fieldsOf(input)))) return null;
  return <Code id={id} text={JSON.stringify(input, null, 2)} language="json" />;
}

/** The other fields in short. The raw event has all of them. */
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

/** The part of an input that distinguishes calls: the command, the file, or else the first field. */
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
