import type { QuestionMessage } from "@tokenrail/client";

import { unhidden } from "../content/given.ts";
import { remaining, timeOf } from "../ui/format.ts";
import { useNow } from "../ui/now.ts";
import { labelOf } from "./answers.ts";

/** How long the request waits for an answer, and what happens then. */
export function Countdown({ question }: { readonly question: QuestionMessage }) {
  const { expiresAt, defaultOptionId, options } = question;
  const now = useNow(1_000, expiresAt !== undefined);
  if (expiresAt === undefined) return null;
  const option = options.find(({ optionId }) => optionId === defaultOptionId);
  const chosen = option ? labelOf(option, question) : defaultOptionId && unhidden(defaultOptionId);
  const what = chosen ? `“${chosen}”` : "the request";
  const done = chosen ? "chosen" : "dismissed";
  const then = `If nobody answers, ${what} will be ${done}`;
  const left = Date.parse(expiresAt) - now;
  return (
    <p className="hint" data-testid="countdown">
      <span aria-hidden="true">
        {left > 0 ? (
          <>
            {then} <span className="whole">in {remaining(left)}</span>.
          </>
        ) : (
          `Time is up: ${what} is being ${done}.`
        )}
      </span>
      {/* A screen reader hears a time that does not change. */}
      <span className="unseen">
        {then} at {timeOf(expiresAt)}.
      </span>
    </p>
  );
}
