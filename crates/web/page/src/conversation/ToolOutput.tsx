import type { ReactNode } from "react";

import { Ansi } from "../markdown/ansi.tsx";
import { Clipped, type Part } from "./Clipped.tsx";
import { imagesIn, withoutImages } from "./images.ts";
import { Pictures } from "./Picture.tsx";
import type { ToolRow } from "./row.ts";
import { asText } from "./text.ts";
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
      {text && clipped(row, text)}
    </>
  );
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
