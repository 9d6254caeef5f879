import { Icon } from "../ui/Icon.tsx";
import { crashIn, plainError } from "./plain-error.ts";
import type { ErrorRow } from "./row.ts";

const classes: Record<string, string> = {
  rate_limit: "Rate limit",
  overloaded: "Overloaded",
  authentication: "Authentication error",
  invalid_request: "Invalid request",
  network: "Network error",
  timeout: "Timeout",
  process: "Process error",
  protocol: "Protocol error",
  unknown: "Error",
};

interface Props {
  readonly row: ErrorRow;
  readonly onRetry?: (() => void) | undefined;
}

export function ErrorCard({ row, onRetry }: Props) {
  const crash = crashIn(row);
  const text = crash ? row.text : plainError(row.text);
  return (
    <section className="error-card" data-testid="error-card" data-class={row.class}>
      <h3>
        <Icon name="alert" />
        {classes[row.class] ?? row.class}
        {row.code && <code className="detail">{row.code}</code>}
        {row.recoverable && <span className="tag">temporary</span>}
      </h3>
      <div className="plain" dir="auto" data-testid="error-text">
        {crash?.how ?? text}
        {crash && <pre className="error-output">{crash.printed}</pre>}
      </div>
      {text !== row.text && <pre className="plain detail">{row.text}</pre>}
      {row.retryAfter !== undefined && <p className="hint">Wait {row.retryAfter} s before you send the message again.</p>}
      {onRetry && (
        <button type="button" className="button" data-testid="retry" onClick={onRetry}>
          <Icon name="replay" /> Send the message again
        </button>
      )}
    </section>
  );
}
