import { type FormEvent, useState } from "react";

import { Icon } from "../ui/Icon.tsx";
import type { Survey } from "./answers.ts";
import { unhidden } from "./given.ts";

interface Props {
  readonly id: string;
  readonly survey: Survey;
  readonly chosen: string | undefined;
  /** Absent if nobody can answer here. */
  readonly choose: ((optionId: string) => void) | undefined;
}

/** A question of the agent, with the answers to choose from. */
export function SurveyForm({ id, survey, chosen, choose }: Props) {
  const { header, text, choices, takesSeveral, refusals } = survey;
  const [picked, setPicked] = useState<string>();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (picked !== undefined) choose?.(picked);
  };
  return (
    <form className="survey" onSubmit={submit}>
      <fieldset disabled={!choose || chosen !== undefined}>
        <legend>
          <Icon name="alert" />
          {header && <span className="survey-header">{header}</span>}{" "}
          <span>{text}</span>
        </legend>
        {choices.map(({ option, label, description }, at) => (
          <label key={option.optionId} className="choice">
            <input
              type="radio"
              name={`${id} answer`}
              data-key={at + 1}
              checked={picked === option.optionId}
              onChange={() => setPicked(option.optionId)}
            />
            <span>
              <span className="choice-label">{label}</span>
              {description && <span className="choice-description">{description}</span>}
            </span>
            {choose && <kbd aria-hidden="true">{at + 1}</kbd>}
          </label>
        ))}
      </fieldset>
      {choose && takesSeveral && <p className="hint">The agent would take several answers, but only one can be sent.</p>}
      {choose && (
        <div className="question-options" role="group" aria-label="Answers">
          <button type="submit" className="button primary" data-testid="answer-survey" disabled={!picked || chosen !== undefined}>
            Answer
          </button>
          {refusals.map((option) => (
            <button
              key={option.optionId}
              type="button"
              className="button"
              data-testid={`answer-${option.kind}`}
              disabled={chosen !== undefined}
              onClick={() => choose(option.optionId)}
            >
              {unhidden(option.name)}
            </button>
          ))}
        </div>
      )}
    </form>
  );
}
