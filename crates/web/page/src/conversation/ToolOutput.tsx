import { Ansi } from "../markdown/ansi.tsx";
import { Clipped, type Part } from "./Clipped.tsx";
import { imagesIn, withoutImages } from "./images.ts";
import { Pictures } from "./Picture.tsx";
import type { ToolRow } from "./row.ts";
import { asText } from "./text.ts";

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
  return (
    <>
      {hasImages && (
        <div className="pictures">
          <Pictures value={row.output} />
        </div>
      )}
      {text && (
        <Clipped
          id={`${row.key} output`}
          label={labelOf(row)}
          text={text}
          lines={outputLines}
          part={partOf(row)}
        >
          {(shown) => <Ansi text={shown} />}
        </Clipped>
      )}
    </>
  );
}
