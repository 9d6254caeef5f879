import type { QuestionMessage } from "@tokenrail/client";

import { sizeOfData } from "../../content/image-size.ts";
import { type ImageData, imagesIn, withoutImages } from "../../content/images.ts";
import { type Change, kindOf, type LookKind } from "../../content/kind.ts";
import { asText } from "../../content/text.ts";
import { count, counted } from "../../ui/format.ts";
import { answerIn, surveyOf } from "../answers.ts";
import { shortPath } from "../folder.ts";
import type { ToolRow } from "../row.ts";
import { summaryOf } from "../ToolInput.tsx";
import { type Diff, diffOf } from "./diff.ts";
import { exitCodeOf } from "./exit.ts";
import { foundIn } from "./found.ts";
import { reportedDiffs } from "./reported.ts";
import { progressOf } from "./Todos.tsx";

/** What distinguishes a call from others of the same tool. Paths are relative to the folder of the agent. */
export function summaryOfCall({ name, input, asked }: ToolRow, folder: string): string {
  const answers = asked.map(({ question }) => answerOf(question)).filter((answer) => answer !== undefined);
  if (answers.length > 0) return answers.join("; ");
  const kind = kindOf(name, input);
  switch (kind.kind) {
    case "edit":
    case "cell":
      return shortPath(kind.path, folder);
    case "todos":
      return progressOf(kind.todos);
    case "look":
      return shortPath(kind.what, folder) || summaryOf(input);
    case "patch":
      return filesIn(kind.text, folder) || summaryOf(input);
    case "plan":
      return "Plan";
    case "agent":
      return kind.title || summaryOf(kind.prompt);
    default:
      return shortPath(summaryOf(input), folder);
  }
}

/** Only the beginning of a long patch is searched for the names of its files. */
const searchedPatch = 20_000;
const mostFiles = 3;

/** The files of a patch. */
function filesIn(patch: string, folder: string): string {
  const heads = /^\*\*\* (?!Begin Patch|End Patch|End of File|Move to: )(?:(?:Update|Add|Delete) File: )?(.+)$|^diff --git .* "?b\/(.+?)"?$/gm;
  const names = [...patch.slice(0, searchedPatch).matchAll(heads)].map(([, own, git]) => shortPath(own ?? git ?? "", folder));
  const others = names.length - mostFiles;
  return others > 0 ? `${names.slice(0, mostFiles).join(", ")} and ${counted(others, "other")}` : names.join(", ");
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
  if (kind.kind === "edit") {
    const reported = reportedDiffs(row);
    return reported.length > 0 ? <DiffCounts diffs={reported} /> : <ChangeCounts changes={kind.changes} />;
  }
  if (kind.kind === "agent") return kind.type ? <span className="fact">{kind.type}</span> : null;
  if (kind.kind === "look" && row.state === "done" && row.output !== undefined) return <span className="fact">{sizeOf(row, kind)}</span>;
  const code = kind.kind === "command" ? exitCodeOf(row.output) : undefined;
  return code ? <span className="exit">exit {code}</span> : null;
}

/** How many lines are added and removed. */
export function ChangeCounts({ changes }: { readonly changes: readonly Change[] }) {
  const diffs = changes.map(diffOf);
  return diffs.every((diff) => diff !== undefined) ? <DiffCounts diffs={diffs} /> : null;
}

function DiffCounts({ diffs }: { readonly diffs: readonly Diff[] }) {
  const sum = (numbers: number[]) => numbers.reduce((total, number) => total + number, 0);
  return (
    <span className="counts">
      <span className="plus">+{sum(diffs.map(({ added }) => added))}</span>{" "}
      <span className="minus">−{sum(diffs.map(({ removed }) => removed))}</span>
    </span>
  );
}

/** How much a call has found: the size of an image, the lines of a text. A page of the web need not have lines. */
function sizeOf({ output }: ToolRow, { isWeb, verb }: LookKind): string {
  const images = imagesIn(output);
  const text = asText(images.length > 0 ? withoutImages(output) : output).trimEnd();
  if (images.length > 0 && !text) return sizeOfImages(images);
  if (!text) return "no output";
  const found = isWeb && verb === "Searched" ? foundIn(text) : undefined;
  if (found) return counted(found.links.length, "result");
  return isWeb ? counted(text.length, "character") : counted(text.split("\n").length, "line");
}

function sizeOfImages(images: readonly ImageData[]): string {
  const [only] = images;
  const size = only && images.length === 1 ? sizeOfData(only.data) : undefined;
  return size ? `${count(size.width)} × ${count(size.height)}` : counted(images.length, "image");
}
