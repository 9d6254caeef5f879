import type { QuestionMessage, QuestionOption } from "@tokenrail/client";
import { useState } from "react";

import { sentence } from "../ui/format.ts";
import { Icon } from "../ui/Icon.tsx";
import { useAnswering } from "./answering.ts";
import { Countdown } from "./Countdown.tsx";
import { unhidden } from "./given.ts";
import { useKept } from "./kept.tsx";
import { QuestionInput } from "./QuestionInput.tsx";
import type { QuestionRow } from "./row.ts";

/** A permission request: what the agent wants to do, and a button for each answer. */
export function QuestionCard({ row }: { readonly row: QuestionRow }) {
  const { question } = row;
  const answer = useAnswering();
  const [chosen, setChosen] = useState<string>();
  const [error, setError] = useState<Error>();
  // The user must not allow anything that was not visible.
  const [seen, setSeen] = useKept(`${row.key} seen`, false);
  const choose = (optionId: string) => {
    setChosen(optionId);
    setError(undefined);
    answer?.(question.requestId, optionId).catch((refused: unknown) => {
      setChosen(undefined);
      setError(refused instanceof Error ? refused : new Error(String(refused)));
    });
  };
  const open = question.state === "open";
  return (
    <section className="question" data-state={question.state} data-testid="question-card" aria-label="Permission request">
      <h3>
        <Icon name={open ? "alert" : isAllowed(question) ? "check" : "cross"} />
        <span>
          {open ? "Allow " : "Asked to use "}
          <code>{unhidden(question.toolName) || "a tool"}</code>
          {open ? "?" : "."}
        </span>
      </h3>
      <QuestionInput input={question.input} onSeen={() => seen || setSeen(true)} />
      {open && answer && !seen && (
        <p className="hint" role="status">
          Scroll to the end of the input to enable the Allow buttons.
        </p>
      )}
      {open && answer && (
        <div className="question-options" role="group" aria-label="Answers">
          {question.options.map((option) => (
            <button
              key={option.optionId}
              type="button"
              className={`button${option.kind === "allow_once" ? " primary" : ""}`}
              data-testid={`answer-${option.kind}`}
              disabled={chosen !== undefined || !(seen || isRefusal(option))}
              onClick={() => choose(option.optionId)}
            >
              {chosen === option.optionId && <span className="spinner" aria-hidden="true" />}
              {unhidden(option.name)}
            </button>
          ))}
        </div>
      )}
      {open && answer && <Countdown question={question} />}
      {!open && <p className="hint">{settledBy(question)}</p>}
      {error && (
        <p className="hint bad" role="alert">
          {sentence(error.message)}
        </p>
      )}
    </section>
  );
}

function chosenOption({ options, optionId }: QuestionMessage): QuestionOption | undefined {
  return options.find((option) => option.optionId === optionId);
}

function isAllowed(question: QuestionMessage): boolean {
  return chosenOption(question)?.kind.startsWith("allow") ?? false;
}

function isRefusal({ kind }: QuestionOption): boolean {
  return kind.startsWith("reject");
}

/** The outcome of a permission request, as a sentence. */
function settledBy(question: QuestionMessage): string {
  if (question.state === "closed") return "The turn ended before the request was answered.";
  const option = chosenOption(question)?.name ?? question.optionId;
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
