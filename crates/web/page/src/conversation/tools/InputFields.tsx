import { fieldsOf, inShort } from "../../content/given.ts";
import { linked } from "../../markdown/Markdown.tsx";
import { counted } from "../../ui/format.ts";
import { shortOf } from "../Clipped.tsx";
import { useShortPath } from "../folder.ts";
import { useKept } from "../kept.tsx";

/** Lines of a field that are shown until the user requests the rest. */
export const fieldLines = 14;

/** More fields are only in the JSON. */
const mostFields = 40;

/** How many lists of fields are one in the other. */
const deepest = 3;

interface Props {
  readonly id: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly depth?: number;
}

/** The input or the output of a tool that the page does not know, as a list of names and values. */
export function InputFields({ id, fields, depth = 1 }: Props) {
  const names = Object.keys(fields);
  return (
    <dl className="input-fields">
      {names.slice(0, mostFields).map((name) => (
        <div key={name}>
          <dt>{name.replaceAll("_", " ")}</dt>
          <dd>
            <Value id={`${id} ${name}`} value={fields[name]} depth={depth} />
          </dd>
        </div>
      ))}
      {names.length > mostFields && (
        <div>
          <dt>…</dt>
          <dd>{counted(names.length - mostFields, "more field")}</dd>
        </div>
      )}
    </dl>
  );
}

function Value({ id, value, depth }: { readonly id: string; readonly value: unknown; readonly depth: number }) {
  if (typeof value === "string") return <Text id={id} text={value} />;
  if (isListOfWords(value)) return value.join(", ") || "none";
  if (typeof value === "object" && value !== null && !Array.isArray(value) && depth < deepest)
    return Object.keys(value).length === 0 ? "none" : <InputFields id={id} fields={fieldsOf(value)} depth={depth + 1} />;
  return value === null ? "none" : inShort(value);
}

/** A longer list is shown in short. */
const mostWords = 30;

function isListOfWords(value: unknown): value is (string | number)[] {
  const isWord = (each: unknown) => typeof each === "number" || (typeof each === "string" && each.length < 80 && !/[\n,]/.test(each));
  return Array.isArray(value) && value.length <= mostWords && value.every(isWord);
}

function Text({ id, text }: { readonly id: string; readonly text: string }) {
  const [all, setAll] = useKept(`${id} all`, false);
  const path = useShortPath(text);
  if (path !== text && !/\s/.test(path)) return <span title={text}>{path}</span>;
  const short = shortOf(text, fieldLines);
  return (
    <>
      <span className="field-text">{linked(text, text) ?? (all ? text : short)}</span>
      {short.length < text.length && (
        <button type="button" className="link more-text" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? "Show less" : `Show all ${counted(text.length, "character")}`}
        </button>
      )}
    </>
  );
}
