import type { PermissionAnswer } from "@tokenrail/client";
import { type FormEvent, useState } from "react";

import { unhidden } from "../content/given.ts";
import { Icon } from "../ui/Icon.tsx";
import { answerOf, type Survey } from "./answers.ts";
import { useTyped } from "./typed.ts";

interface Props {
  readonly id: string;
  readonly survey: Survey;
  /** The number of the question among those that are asked together. Absent if there is only one. */
  readonly place?: string | undefined;
  readonly chosen: PermissionAnswer | undefined;
  /** Absent if nobody can answer here. */
  readonly choose: ((answer: PermissionAnswer) => void) | undefined;
}

/** The place of the user's own answer among the picked ones. No option of a question has this id. */
const other = "";

const nothing: readonly string[] = [];

/** A question of the agent, with the answers to choose from. */
export function SurveyForm({ id, survey, place, chosen, choose }: Props) {
  const { choices, takesSeveral, takesText, wantsSeveral, refusals } = survey;
  const [picked, setPicked] = useTyped(`${id} picked`, nothing, choose !== undefined);
  const [text, setText] = useTyped(`${id} text`, "", choose !== undefined);
  // A field that comes back because the user scrolls must not take the focus.
  const [isNew, setNew] = useState(false);
  const hasOther = picked.includes(other);
  const isComplete = picked.length > 0 && (!hasOther || text.trim() !== "");
  const pick = (answer: string) => {
    setNew(answer === other);
    if (!takesSeveral) return setPicked([answer]);
    setPicked(picked.includes(answer) ? picked.filter((each) => each !== answer) : [...picked, answer]);
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const optionIds = choices.map(({ option }) => option.optionId).filter((each) => picked.includes(each));
    if (isComplete) choose?.(answerOf(optionIds, hasOther ? text.trim() : ""));
  };
  const input = (answer: string, at: number) => ({
    type: takesSeveral ? "checkbox" : "radio",
    name: `${id} answer`,
    "data-key": at + 1,
    checked: picked.includes(answer),
    onChange: () => pick(answer),
  });
  return (
    <form className="survey" onSubmit={submit}>
      <fieldset disabled={!choose || chosen !== undefined}>
        <Legend survey={survey} place={place} />
        {choices.map(({ option, label, description }, at) => (
          <label key={option.optionId} className="choice">
            <input {...input(option.optionId, at)} />
            <span>
              <span className="choice-label">{label}</span>
              {description && <span className="choice-description">{description}</span>}
            </span>
            {choose && <kbd aria-hidden="true">{at + 1}</kbd>}
          </label>
        ))}
        {choose && takesText && (
          <div className="choice-other">
            <label className="choice">
              <input {...input(other, choices.length)} data-testid="answer-other" />
              <span className="choice-label">Other…</span>
              <kbd aria-hidden="true">{choices.length + 1}</kbd>
            </label>
            {hasOther && <OwnAnswer text={text} hasFocus={isNew} onText={setText} />}
          </div>
        )}
      </fieldset>
      {choose && wantsSeveral && (
        <p className="hint">The agent asked for one or more answers, but you can send only one.</p>
      )}
      {choose && <Answers refusals={refusals} isComplete={isComplete} hasChosen={chosen !== undefined} choose={choose} />}
    </form>
  );
}

interface OwnAnswerProps {
  readonly text: string;
  readonly hasFocus: boolean;
  readonly onText: (text: string) => void;
}

function OwnAnswer({ text, hasFocus, onText }: OwnAnswerProps) {
  return (
    <input
      type="text"
      name="other"
      aria-label="Your own answer"
      placeholder="Your own answer"
      autoComplete="off"
      autoFocus={hasFocus}
      value={text}
      onChange={(event) => onText(event.target.value)}
    />
  );
}

interface AnswersProps {
  readonly refusals: Survey["refusals"];
  readonly isComplete: boolean;
  readonly hasChosen: boolean;
  readonly choose: (answer: PermissionAnswer) => void;
}

/** The button that sends the answer, and those that refuse to answer. */
function Answers({ refusals, isComplete, hasChosen, choose }: AnswersProps) {
  return (
    <div className="question-options" role="group" aria-label="Answers">
      <button type="submit" className="button primary" data-testid="answer-survey" disabled={!isComplete || hasChosen}>
        Answer
      </button>
      {refusals.map((option) => (
        <button
          key={option.optionId}
          type="button"
          className="button"
          data-testid={`answer-${option.kind}`}
          disabled={hasChosen}
          onClick={() => choose({ optionId: option.optionId })}
        >
          {unhidden(option.name)}
        </button>
      ))}
    </div>
  );
}

function Legend({ survey: { header, text, takesSeveral }, place }: Pick<Props, "survey" | "place">) {
  return (
    <legend>
      <Icon name="question" />
      {place && <span className="survey-place">{place}</span>}{" "}
      {header && <span className="survey-header">{header}</span>}{" "}
      <span>{text}</span>{" "}
      {takesSeveral && <span className="survey-several">(choose one or more)</span>}
    </legend>
  );
}
