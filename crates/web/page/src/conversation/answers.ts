// The options of a permission request, in words for the user.
import type { PermissionAnswer, QuestionMessage, QuestionOption } from "@tokenrail/client";

import { asksUser } from "../agent/asking.ts";
import { fieldsOf, unhidden } from "../content/given.ts";
import { kindOf } from "../content/kind.ts";

export interface Choice {
  readonly option: QuestionOption;
  readonly label: string;
  readonly description: string;
}

/** A question with answers to choose from, instead of a permission. */
export interface Survey {
  readonly header: string;
  readonly text: string;
  readonly choices: readonly Choice[];
  readonly takesSeveral: boolean;
  /** Whether the user may answer in their own words. */
  readonly takesText: boolean;
  /** The agent would take several answers, but the server does not pass them on. */
  readonly wantsSeveral: boolean;
  readonly refusals: readonly QuestionOption[];
}

/** `undefined` if the request is about something else, or if its options are not exactly the answers. */
export function surveyOf({ toolName, input, options, accepts }: QuestionMessage): Survey | undefined {
  if (!asksUser(toolName)) return undefined;
  const { question, header, options: answers, multiSelect } = fieldsOf(input);
  const allowed = options.filter(({ kind }) => kind === "allow_once");
  if (typeof question !== "string" || !Array.isArray(answers) || answers.length !== allowed.length) return undefined;
  const choices = allowed.map((option, at) => {
    const { label, description } = fieldsOf(answers[at]);
    const text = typeof description === "string" ? unhidden(description) : "";
    return label === option.name ? { option, label: unhidden(option.name), description: text } : undefined;
  });
  if (!choices.every((choice) => choice !== undefined)) return undefined;
  return {
    header: typeof header === "string" ? unhidden(header) : "",
    text: unhidden(question),
    choices,
    takesSeveral: accepts.several === true,
    takesText: accepts.text === true,
    wantsSeveral: multiSelect === true && accepts.several !== true,
    refusals: options.filter(isRefusal),
  };
}

export function isRefusal({ kind }: QuestionOption): boolean {
  return kind.startsWith("reject");
}

const approve = "Approve plan";

function isPlan({ toolName, input }: Pick<QuestionMessage, "toolName" | "input">): boolean {
  return kindOf(toolName, input).kind === "plan";
}

/** The text of a button. An agent's own words are kept. */
export function labelOf({ name, kind }: QuestionOption, { toolName, input }: QuestionMessage): string {
  const forPlan = isPlan({ toolName, input });
  if (kind === "allow_once" && name === "Allow") return forPlan ? approve : "Allow once";
  if (kind === "reject_once" && name === "Reject" && forPlan) return "Keep planning";
  return unhidden(kind === "allow_always" ? alwaysIn(name) : name);
}

/** Where Claude keeps a rule. */
const keepers: Readonly<Record<string, string>> = {
  localSettings: "for this folder, on the server's machine",
  projectSettings: "for everyone who uses this folder",
  userSettings: "for all folders, on the server's machine",
};

/** Claude's rule for a command in words. Any other rule stays as it is. */
function alwaysIn(name: string): string {
  const [, rule, place = ""] = /^Always allow Bash\(([^()]+)\) \((for this session|saved in \w+)\)$/.exec(name) ?? [];
  if (rule === undefined) return name;
  const begin = /^(.+):\*$/.exec(rule)?.[1];
  // Other wildcards have no short form.
  if ((begin ?? rule).includes("*")) return name;
  const keeper = keepers[place.replace("saved in ", "")] ?? place;
  return `Always allow ${begin === undefined ? "the command" : "commands that begin with"} “${begin ?? rule}” (${keeper})`;
}

/** The answer that consists of these options, and of a text if it is not empty. */
export function answerOf(optionIds: readonly string[], text: string): PermissionAnswer {
  const [optionId, ...more] = optionIds;
  return {
    ...(more.length > 0 ? { optionIds: [...optionIds] } : optionId !== undefined && { optionId }),
    ...(text && { text }),
  };
}

function chosenOptions({ options, optionIds }: QuestionMessage): QuestionOption[] {
  return options.filter(({ optionId }) => optionIds.includes(optionId));
}

/** The labels of the chosen options and the user's own words. Empty if there are none. */
export function answerIn(question: QuestionMessage): string {
  const labels = chosenOptions(question).map((option) => labelOf(option, question));
  // An option that the request does not have is shown by its id.
  const unknown = labels.length === 0 && question.optionId ? [unhidden(question.optionId)] : [];
  return [...labels, ...unknown, ...(question.text ? [`“${unhidden(question.text)}”`] : [])].join(", ");
}

export function isAllowed(question: QuestionMessage): boolean {
  const chosen = chosenOptions(question);
  if (chosen.length === 0) return question.text !== undefined;
  return chosen.every(({ kind }) => kind.startsWith("allow"));
}

/** The outcome of a permission request, as a sentence. */
export function settledBy(question: QuestionMessage): string {
  if (question.state === "closed") return "The turn ended before the request was answered.";
  const option = answerIn(question);
  const note = question.note ? ` Note to the agent: “${unhidden(question.note)}”` : "";
  switch (question.by) {
    case "timeout":
      return `Timed out without an answer${option ? `; the default was chosen: ${option}` : ""}.`;
    case "cancel":
      return "The turn was cancelled.";
    case "agent":
      return "The agent withdrew the request.";
    default:
      if (option === approve && isPlan(question)) return `Plan approved.${note}`;
      return option ? `Answered: ${option}.${note}` : "Dismissed.";
  }
}
