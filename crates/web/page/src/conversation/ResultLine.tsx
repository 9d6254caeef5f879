import { tokensOf } from "../agent/usage.ts";
import { compact, cost, counted, duration } from "../ui/format.ts";
import { Icon } from "../ui/Icon.tsx";
import type { ResultRow } from "./row.ts";

/** How a turn ended, and what it used. */
export function ResultLine({ row }: { readonly row: ResultRow }) {
  const good = row.outcome === "completed";
  const tokens = tokensOf(row.usage);
  return (
    <div className="result" data-outcome={row.outcome} data-testid="result">
      <Icon name={good ? "check" : row.outcome === "cancelled" ? "stop" : "cross"} />
      {/* What does not fit continues below the words, not below the mark. */}
      <div className="result-words">
        <strong>
          {row.outcome} {good ? "in" : "after"} {duration(row.durationMs)}
        </strong>
        {row.requests !== undefined && <span className="detail">{counted(row.requests, "model request")}</span>}
        {tokens && (
          <span
            title={`${counted(tokens.input, "token")} in (${counted(tokens.cached, "token")} cached), ${counted(tokens.output, "token")} out`}
          >
            {compact(tokens.input)} tokens in · {compact(tokens.output)} out
          </span>
        )}
        {row.costUsd !== undefined && row.costUsd > 0 && <span>{cost(row.costUsd)}</span>}
      </div>
    </div>
  );
}
