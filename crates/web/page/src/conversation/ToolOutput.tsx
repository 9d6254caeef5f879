import type { ReactNode } from "react";

import { Ansi } from "../markdown/ansi.tsx";
import { CopyButton } from "../ui/CopyButton.tsx";
import { Clipped, type Part } from "./Clipped.tsx";
import { fieldsOf } from "./given.ts";
import { imagesIn, withoutImages } from "./images.ts";
import { Pictures } from "./Picture.tsx";
import type { ToolRow } from "./row.ts";
import { asText } from "./text.ts";
import { InputFields } from "./tools/InputFields.tsx";
import { isLooking, kindOf } from "./tools/kind.ts";

/** Lines of an output that are shown until the user requests the rest. */
export const outputLines = 12;

/** The reason of a failure is at the end of the output. */
export function partOf({ state }: ToolRow): Part {
  return state === "failed" ? "end" : "beginning";
}

/** A call that was not allowed has no output of its own. */
function labelOf({ state }: ToolRow): string {
  if (state === "rejected" || state === "expired") return "What the agent was told";
  return state === "failed" ? "Output of the failed call" : "Output";
}

export function ToolOutput({ row }: { readonly row: ToolRow }) {
  if (row.output === undefined) return null;
  const text = asText(withoutImages(row.output));
  const hasImages = imagesIn(row.output).length > 0;
  if (!text && !hasImages) return <p className="hint">No output.</p>;
  if (isQuiet(row, text)) return <div className="detail">{clipped(row, text)}</div>;
  return (
    <>
      {hasImages && (
        <div className="pictures">
          <Pictures value={row.output} />
        </div>
      )}
      {text && <TextOutput row={row} text={text} />}
    </>
  );
}

function TextOutput({ row, text }: { readonly row: ToolRow; readonly text: string }) {
  const fields = outputFieldsOf(row);
  if (!fields) return clipped(row, text);
  return (
    <>
      <figure className="io input-fields-output">
        <figcaption>
          <span>{labelOf(row)}</span>
          <CopyButton text={text} what="output" />
        </figcaption>
        <InputFields id={`${row.key} output`} fields={fields} />
      </figure>
      <div className="detail">{clipped(row, text)}</div>
    </>
  );
}

/** A longer JSON text is shown as it is. */
const longestJson = 20_000;

/** The fields of the output of a tool that the page does not know, if it is a JSON object. */
export function outputFieldsOf({ name, input, output, state }: ToolRow): Readonly<Record<string, unknown>> | undefined {
  if (state !== "done" || kindOf(name, input).kind !== "other") return undefined;
  const text = asText(withoutImages(output));
  if (text.length > longestJson || !/^\s*\{[^]*\}\s*$/.test(text)) return undefined;
  try {
    const fields = fieldsOf(JSON.parse(text));
    return Object.keys(fields).length > 0 ? fields : undefined;
  } catch {
    return undefined;
  }
}

/** What tools say about an edit that succeeded. */
const said = /^(The file .{1,4000} has been (updated|created|overwritten)|File (created|written|edited)|(Edit|Edits|Changes) applied|Applied \d+ edits? to |Wrote |Successfully |Updated |Edited )/i;

/** A longer output may say more than that, except that some versions of Claude print the new lines. */
const longestSaid = 300;
const printed = /Here's the result of running `cat -n`/;

/** An output that would only repeat what the card shows. Developers can see it. */
function isQuiet({ name, input, state, asked }: ToolRow, text: string): boolean {
  // Nobody has rejected a request that nobody answered, although the agent is told so.
  if (state === "expired" || (state === "rejected" && asked.length > 0)) return true;
  if (state !== "done") return false;
  const { kind } = kindOf(name, input);
  if (kind === "todos") return true;
  return kind === "edit" && !isLooking(name) && said.test(text) && (text.length <= longestSaid || printed.test(text));
}

function clipped(row: ToolRow, text: string): ReactNode {
  return (
    <Clipped id={`${row.key} output`} label={labelOf(row)} text={text} lines={outputLines} part={partOf(row)}>
      {(shown) => <Ansi text={shown} />}
    </Clipped>
  );
}
