import type { PermissionAnswer, QuestionMessage } from "@tokenrail/client";
import { useRef } from "react";

import { fieldsOf, unhidden } from "../content/given.ts";
import { kindOf } from "../content/kind.ts";
import { sentence } from "../ui/format.ts";
import { Icon } from "../ui/Icon.tsx";
import { useAnswerKeys } from "./answer-keys.ts";
import { useAnswering } from "./answering.ts";
import { isAllowed, isRefusal, labelOf, settledBy, surveyOf } from "./answers.ts";
import { Countdown } from "./Countdown.tsx";
import { useShortPath } from "./folder.ts";
import { useKept, useKeptValue } from "./kept.tsx";
import { NoteForm } from "./NoteForm.tsx";
import { QuestionInput } from "./QuestionInput.tsx";
import type { QuestionRow, ToolRow } from "./row.ts";
import { EarlierAnswers } from "./Settled.tsx";
import { SurveyForm } from "./SurveyForm.tsx";
import { ChangeCounts } from "./tools/Head.tsx";

interface Props {
  readonly row: QuestionRow;
  /** The call that it is about, if it is known. */
  readonly call?: ToolRow | undefined;
}

/** A permission request: what the agent wants to do, and a button for each answer. */
export function QuestionCard({ row, call }: Props) {
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
      {survey && <EarlierAnswers questions={questionsBefore(row, call)} />}
      {survey ? (
        <SurveyForm id={row.key} survey={survey} place={placeOf(row, call)} chosen={chosen} choose={canAnswer ? choose : undefined} />
      ) : (
        <Approval row={row} call={call} chosen={chosen} choose={canAnswer ? choose : undefined} />
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

/** The questions that the same call asked before. */
function questionsBefore({ key }: QuestionRow, call: ToolRow | undefined): QuestionMessage[] {
  const asked = call?.asked ?? [];
  return asked.slice(0, asked.findIndex((row) => row.key === key)).map(({ question }) => question);
}

/** 2 of 3. An agent can ask several questions with one call, which are asked one after the other. */
function placeOf(row: QuestionRow, call: ToolRow | undefined): string | undefined {
  const { questions } = fieldsOf(call?.input);
  if (!Array.isArray(questions) || questions.length < 2) return undefined;
  return `${questionsBefore(row, call).length + 1} of ${questions.length}`;
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

interface ApprovalProps extends Props {
  readonly chosen: PermissionAnswer | undefined;
  /** Absent if nobody can answer here. */
  readonly choose: ((answer: PermissionAnswer) => void) | undefined;
}

function Approval({ row: { key, question }, call, chosen, choose }: ApprovalProps) {
  // The user must not allow anything that was not visible.
  const [seen, setSeen] = useKept(`${key} seen`, false);
  const purpose = purposeOf(question);
  return (
    <>
      <Headline question={question} />
      {purpose && <p className="purpose">The agent says: “{purpose}”</p>}
      <QuestionInput
        name={question.toolName}
        input={question.input}
        call={call}
        besides={purpose ? ["description"] : []}
        isAskedToScroll={choose !== undefined && !seen}
        onSeen={() => seen || setSeen(true)}
      />
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

/** A longer description is shown with the other fields. */
const longestPurpose = 200;

/** What the agent says about a command. It need not be true, so it is quoted and is no part of the headline. */
function purposeOf({ toolName, input }: QuestionMessage): string | undefined {
  const { description } = fieldsOf(input);
  if (kindOf(toolName, input).kind !== "command" || typeof description !== "string") return undefined;
  return description && description.length <= longestPurpose && !/\s{2}|[\n\r\u2028\u2029]/.test(description) ? unhidden(description) : undefined;
}

/** What the agent asks for. Its own description is not a part of it. */
function Headline({ question }: { readonly question: QuestionMessage }) {
  const open = question.state === "open";
  const kind = kindOf(question.toolName, question.input);
  if (kind.kind === "plan")
    return (
      <h3>
        <Icon name={open ? "question" : isAllowed(question) ? "check" : "cross"} />
        <span>{open ? "Approve the plan?" : "The agent asked for approval of a plan."}</span>
      </h3>
    );
  const tool = <code>{unhidden(question.toolName) || "a tool"}</code>;
  return (
    <h3>
      <Icon name={open ? "alert" : isAllowed(question) ? "check" : "cross"} />
      <span>
        {open ? "Allow " : "The agent asked to use "}
        {tool}
        {kind.kind === "edit" && (
          <>
            {" on "}
            <FilePath path={kind.path} />
          </>
        )}
        {open ? "?" : "."}
      </span>
      {kind.kind === "edit" && <ChangeCounts changes={kind.changes} />}
    </h3>
  );
}

function FilePath({ path }: { readonly path: string }) {
  return <code title={unhidden(path)}>{unhidden(useShortPath(path))}</code>;
}
