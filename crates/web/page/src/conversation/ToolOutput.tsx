import type { ReactNode } from "react";

import { fieldsOf } from "../content/given.ts";
import { imagesIn, withoutImages } from "../content/images.ts";
import { isLooking, kindOf } from "../content/kind.ts";
import { Pictures } from "../content/Picture.tsx";
import { asText } from "../content/text.ts";
import { Ansi } from "../markdown/ansi.tsx";
import { Markdown } from "../markdown/Markdown.tsx";
import { CopyButton } from "../ui/CopyButton.tsx";
import { Clipped, type Part } from "./Clipped.tsx";
import type { ToolRow } from "./row.ts";
import { answerOfAgent, isAnswerInside } from "./tools/agent-answer.ts";
import { foundIn } from "./tools/found.ts";
import { FoundLinks } from "./tools/FoundLinks.tsx";
import { InputFields } from "./tools/InputFields.tsx";

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
  if (isQuiet(row, text))
    return (
      <>
        {row.state === "done" && row.asked.length === 0 && approved.test(text) && <p className="hint">Plan approved.</p>}
        <div className="detail">{clipped(row, text)}</div>
      </>
    );
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
  const readable = readableOutput(row, text);
  if (!readable) return clipped(row, text);
  return (
    <>
      {readable}
      <div className="detail">{clipped(row, text)}</div>
    </>
  );
}

/** An output in a form that is easier to read than its text. */
function readableOutput(row: ToolRow, text: string): ReactNode {
  if (row.state !== "done") return undefined;
  const kind = kindOf(row.name, row.input);
  if (kind.kind === "agent") return <Answer row={row} text={text} />;
  const found = kind.kind === "look" && kind.isWeb && kind.verb === "Searched" ? foundIn(text) : undefined;
  if (found) return <FoundLinks found={found} />;
  const fields = outputFieldsOf(row);
  return fields && <FieldsOutput row={row} text={text} fields={fields} />;
}

/** What a sub-agent answered, unless it is the last of its messages above. */
function Answer({ row, text }: { readonly row: ToolRow; readonly text: string }) {
  const answer = answerOfAgent(row.output) || text;
  if (isAnswerInside(row, answer)) return null;
  return (
    <div className="words plan" dir="auto" role="group" aria-label="Answer">
      <Markdown text={answer} />
    </div>
  );
}

interface FieldsProps {
  readonly row: ToolRow;
  readonly text: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

function FieldsOutput({ row, text, fields }: FieldsProps) {
  return (
    <figure className="io input-fields-output">
      <figcaption>
        <span>{labelOf(row)}</span>
        <CopyButton text={text} what="output" />
      </figcaption>
      <InputFields id={`${row.key} output`} fields={fields} />
    </figure>
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
const said = /^(The file .{1,4000} has been (updated|created|overwritten)|File (created|written|edited)|(Edit|Edits|Changes) applied|Applied \d+ edits? to |Wrote |Successfully |Updated |Edited |(Inserted|Deleted) cell )/i;

/** What Claude tells the model about a plan. */
const approved = /^User has approved your plan\b/;

/** A longer output may say more than that, except that some versions of Claude print the new lines. */
const longestSaid = 300;
const printed = /Here's the result of running `cat -n`/;

/** An output that would only repeat what the card shows. Developers can see it. */
function isQuiet({ name, input, state, asked }: ToolRow, text: string): boolean {
  // The server tells the agent that an unanswered request was rejected. The card already says that it timed out.
  if (state === "expired" || (state === "rejected" && asked.length > 0)) return true;
  if (state !== "done") return false;
  const { kind } = kindOf(name, input);
  if (kind === "todos") return true;
  // The answer of the user stands above it. Claude repeats the whole plan.
  if (kind === "plan") return asked.length > 0 || approved.test(text);
  // Claude repeats the new source.
  if (kind === "cell") return said.test(text);
  return kind === "edit" && !isLooking(name) && said.test(text) && (text.length <= longestSaid || printed.test(text));
}

function clipped(row: ToolRow, text: string): ReactNode {
  return (
    <Clipped id={`${row.key} output`} label={labelOf(row)} text={text} lines={outputLines} part={partOf(row)}>
      {(shown) => <Ansi text={shown} />}
    </Clipped>
  );
}
