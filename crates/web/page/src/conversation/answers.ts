// The options of a permission request, in words for the user.
import type { QuestionMessage, QuestionOption } from "@tokenrail/client";

import { fieldsOf, unhidden } from "./given.ts";
import { kindOf } from "./tools/kind.ts";

/** The tool by which an agent lets the user choose. Its name is set by the server. */
const survey = "AskUserQuestion";

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
  readonly refusals: readonly QuestionOption[];
}

/** `undefined` if the request is about something else, or if its options are not exactly the answers. */
export function surveyOf({ toolName, input, options }: QuestionMessage): Survey | undefined {
  if (toolName !== survey) return undefined;
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
    takesSeveral: multiSelect === true,
    refusals: options.filter(isRefusal),
  };
}

export function isRefusal({ kind }: QuestionOption): boolean {
  return kind.startsWith("reject");
}

/** The text of a button. An agent's own words are kept. */
export function labelOf({ name, kind }: QuestionOption, { toolName, input }: QuestionMessage): string {
  const isPlan = kindOf(toolName, input).kind === "plan";
  if (kind === "allow_once" && name === "Allow") return isPlan ? "Approve plan" : "Allow once";
  if (kind === "reject_once" && name === "Reject" && isPlan) return "Keep planning";
  return unhidden(name);
}

export function chosenOption({ options, optionId }: QuestionMessage): QuestionOption | undefined {
  return options.find((option) => option.optionId === optionId);
}

export function isAllowed(question: QuestionMessage): boolean {
  return chosenOption(question)?.kind.startsWith("allow") ?? false;
}

/** The outcome of a permission request, as a sentence. */
export function settledBy(question: QuestionMessage): string {
  if (question.state === "closed") return "The turn ended before the request was answered.";
  const chosen = chosenOption(question);
  const option = chosen ? labelOf(chosen, question) : question.optionId;
  switch (question.by) {
    case "timeout":
      return `Timed out without an answer${option ? `; the default was chosen: ${option}` : ""}.`;
    case "cancel":
      return "The turn was cancelled.";
    case "agent":
      return "The agent withdrew the request.";
    default:
      return option ? `Answered: ${option}.` : "Dismissed.";
  }
}
