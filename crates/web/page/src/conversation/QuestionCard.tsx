import type { PermissionAnswer, QuestionMessage } from "@tokenrail/client";
import { useRef } from "react";

import { sentence } from "../ui/format.ts";
import { Icon } from "../ui/Icon.tsx";
import { useAnswerKeys } from "./answer-keys.ts";
import { useAnswering } from "./answering.ts";
import { isAllowed, isRefusal, labelOf, settledBy, surveyOf } from "./answers.ts";
import { Countdown } from "./Countdown.tsx";
import { unhidden } from "./given.ts";
import { useKept, useKeptValue } from "./kept.tsx";
import { NoteForm } from "./NoteForm.tsx";
import { QuestionInput } from "./QuestionInput.tsx";
import type { QuestionRow } from "./row.ts";
import { SurveyForm } from "./SurveyForm.tsx";
import { ChangeCounts } from "./tools/Head.tsx";
import { kindOf } from "./tools/kind.ts";

/** A permission request: what the agent wants to do, and a button for each answer. */
export function QuestionCard({ row }: { readonly row: QuestionRow }) {
  const { question } = row;
  const { choose, chosen, error, canAnswer } = useChoice(row);
  const card = useRef<HTMLElement>(null);
  const survey = surveyOf(question);
  useAnswerKeys(card, canAnswer);
  return (
    <section
      ref={card}
      className="question"
      data-state={question.state}
      data-testid="question-card"
      aria-label={survey ? "Question" : "Permission request"}
    >
      {survey ? (
        <SurveyForm id={row.key} survey={survey} chosen={chosen} choose={canAnswer ? choose : undefined} />
      ) : (
        <Approval row={row} chosen={chosen} choose={canAnswer ? choose : undefined} />
      )}
      {canAnswer && <Note id={row.key} question={question} chosen={chosen} choose={choose} />}
      {canAnswer && <Countdown question={question} />}
      {question.state !== "open" && <p className="hint">{settledBy(question)}</p>}
      {error && (
        <p className="hint bad" role="alert">
          {sentence(error.message)}
        </p>
      )}
    </section>
  );
}

/** The answer that was chosen and is being sent. */
function useChoice({ key, question }: QuestionRow) {
  const answer = useAnswering();
  const [chosen, setChosen] = useKeptValue<PermissionAnswer | undefined>(`${key} chosen`, undefined);
  const [error, setError] = useKeptValue<Error | undefined>(`${key} error`, undefined);
  const choose = (reply: PermissionAnswer) => {
    setChosen(reply);
    setError(undefined);
    answer?.(question.requestId, reply).catch((refused: unknown) => {
      setChosen(undefined);
      setError(refused instanceof Error ? refused : new Error(String(refused)));
    });
  };
  return { choose, chosen, error, canAnswer: question.state === "open" && answer !== undefined };
}

interface ApprovalProps {
  readonly row: QuestionRow;
  readonly chosen: PermissionAnswer | undefined;
  /** Absent if nobody can answer here. */
  readonly choose: ((answer: PermissionAnswer) => void) | undefined;
}

function Approval({ row: { key, question }, chosen, choose }: ApprovalProps) {
  // The user must not allow anything that was not visible.
  const [seen, setSeen] = useKept(`${key} seen`, false);
  return (
    <>
      <Headline question={question} />
      <QuestionInput name={question.toolName} input={question.input} onSeen={() => seen || setSeen(true)} />
      {choose && !seen && (
        <p className="hint" role="status">
          Scroll to the end of the input to enable the buttons that allow the request.
        </p>
      )}
      {choose && (
        <div className="question-options" role="group" aria-label="Answers">
          {question.options.map((option, at) => (
            <button
              key={option.optionId}
              type="button"
              className={`button${option.kind === "allow_once" ? " primary" : ""}`}
              data-testid={`answer-${option.kind}`}
              data-key={at + 1}
              aria-keyshortcuts={String(at + 1)}
              disabled={chosen !== undefined || !(seen || isRefusal(option))}
              onClick={() => choose({ optionId: option.optionId })}
            >
              {chosen?.optionId === option.optionId ? (
                <span className="spinner" aria-hidden="true" />
              ) : (
                <kbd aria-hidden="true">{at + 1}</kbd>
              )}
              {labelOf(option, question)}
            </button>
          ))}
        </div>
      )}
    </>
  );
}

interface NoteProps {
  readonly id: string;
  readonly question: QuestionMessage;
  readonly chosen: PermissionAnswer | undefined;
  readonly choose: (answer: PermissionAnswer) => void;
}

/** Rejects with a note, if the request accepts one. */
function Note({ id, question, chosen, choose }: NoteProps) {
  const refusal = question.options.find(isRefusal);
  if (!refusal || !question.accepts.note) return null;
  return (
    <NoteForm
      id={id}
      label={labelOf(refusal, question)}
      disabled={chosen !== undefined}
      onReject={(note) => choose({ optionId: refusal.optionId, note })}
    />
  );
}

/** What the agent asks for. Its own description is not a part of it. */
function Headline({ question }: { readonly question: QuestionMessage }) {
  const open = question.state === "open";
  const kind = kindOf(question.toolName, question.input);
  if (kind.kind === "plan")
    return (
      <h3>
        <Icon name={open ? "question" : isAllowed(question) ? "check" : "cross"} />
        <span>{open ? "Approve the plan?" : "Asked to approve a plan."}</span>
      </h3>
    );
  const tool = <code>{unhidden(question.toolName) || "a tool"}</code>;
  return (
    <h3>
      <Icon name={open ? "alert" : isAllowed(question) ? "check" : "cross"} />
      <span>
        {open ? "Allow " : "Asked to use "}
        {tool}
        {kind.kind === "edit" && (
          <>
            {" on "}
            <code>{unhidden(kind.path)}</code>
          </>
        )}
        {open ? "?" : "."}
      </span>
      {kind.kind === "edit" && <ChangeCounts changes={kind.changes} />}
    </h3>
  );
}
