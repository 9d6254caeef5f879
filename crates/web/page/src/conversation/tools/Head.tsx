import type { QuestionMessage } from "@tokenrail/client";

import { counted } from "../../ui/format.ts";
import { answerIn, surveyOf } from "../answers.ts";
import { imagesIn, withoutImages } from "../images.ts";
import type { ToolRow } from "../row.ts";
import { asText } from "../text.ts";
import { summaryOf } from "../ToolInput.tsx";
import { diffOf } from "./diff.ts";
import { exitCodeOf } from "./exit.ts";
import { type Change, kindOf } from "./kind.ts";
import { progressOf } from "./Todos.tsx";

/** What distinguishes a call from others of the same tool. */
export function summaryOfCall({ name, input, asked }: ToolRow): string {
  const answers = asked.map(({ question }) => answerOf(question)).filter((answer) => answer !== undefined);
  if (answers.length > 0) return answers.join("; ");
  const kind = kindOf(name, input);
  switch (kind.kind) {
    case "edit":
      return kind.path;
    case "todos":
      return progressOf(kind.todos);
    case "look":
      return kind.what || summaryOf(input);
    case "plan":
      return "Plan";
    case "agent":
      return kind.title || summaryOf(kind.prompt);
    default:
      return summaryOf(input);
  }
}

/** A question of the agent, and what the user chose. */
function answerOf(question: QuestionMessage): string | undefined {
  const survey = surveyOf(question);
  const answer = answerIn(question);
  return answer && survey ? `${survey.text} ${answer}` : undefined;
}

/** Short facts in the head of a card: changed lines, lines that were read, the exit code. */
export function HeadFacts({ row }: { readonly row: ToolRow }) {
  const kind = kindOf(row.name, row.input);
  if (kind.kind === "edit") return <ChangeCounts changes={kind.changes} />;
  if (kind.kind === "agent") return kind.type ? <span className="fact">{kind.type}</span> : null;
  if (kind.kind === "look" && row.state === "done" && row.output !== undefined) return <span className="fact">{sizeOf(row)}</span>;
  const code = kind.kind === "command" ? exitCodeOf(row.output) : undefined;
  return code ? <span className="exit">exit {code}</span> : null;
}

/** How many lines are added and removed. */
export function ChangeCounts({ changes }: { readonly changes: readonly Change[] }) {
  const diffs = changes.map(diffOf);
  if (!diffs.every((diff) => diff !== undefined)) return null;
  const sum = (numbers: number[]) => numbers.reduce((total, number) => total + number, 0);
  return (
    <span className="counts">
      <span className="plus">+{sum(diffs.map(({ added }) => added))}</span>{" "}
      <span className="minus">−{sum(diffs.map(({ removed }) => removed))}</span>
    </span>
  );
}

function sizeOf({ output }: ToolRow): string {
  const images = imagesIn(output).length;
  const text = asText(images > 0 ? withoutImages(output) : output).trimEnd();
  if (images > 0 && !text) return counted(images, "image");
  return text ? counted(text.split("\n").length, "line") : "no output";
}
