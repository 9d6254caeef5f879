import type { QuestionMessage } from "@tokenrail/client";

import { Icon } from "../ui/Icon.tsx";
import { answerIn, isAllowed, settledBy, surveyOf } from "./answers.ts";

/** How the user answered the request for a call. */
export function Settled({ question }: { readonly question: QuestionMessage }) {
  const survey = surveyOf(question);
  return (
    <p className="hint settled" data-testid="settled" data-allowed={isAllowed(question)}>
      <Icon name={isAllowed(question) ? "check" : "cross"} />
      <span>
        {survey && `${survey.text} `}
        {settledBy(question)}
      </span>
    </p>
  );
}

/** The answers to the questions before the open one, in short. */
export function EarlierAnswers({ questions }: { readonly questions: readonly QuestionMessage[] }) {
  const answered = questions.map((question) => ({ survey: surveyOf(question), answer: answerIn(question) }));
  const lines = answered.filter(({ survey, answer }) => survey && answer);
  if (lines.length === 0) return null;
  return (
    <dl className="earlier-answers" aria-label="Earlier answers">
      {lines.map(({ survey, answer }, at) => (
        <div key={at}>
          <dt>{survey?.header || survey?.text}:</dt>
          <dd>{answer}</dd>
        </div>
      ))}
    </dl>
  );
}
