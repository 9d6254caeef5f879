import { sentence } from "./format.ts";
import { Icon } from "./Icon.tsx";

interface Props {
  readonly error: Error;
  /** What failed. The error says why. */
  readonly what?: string | undefined;
  readonly onRetry?: (() => void) | undefined;
}

export function Trouble({ error, what, onRetry }: Props) {
  return (
    <div className="trouble" role="alert" data-testid="trouble">
      <Icon name="alert" />
      <span>{sentence(what ? `${what}: ${error.message}` : error.message)}</span>
      {onRetry && (
        <button type="button" className="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}
