import { jsonOf } from "./body.js";
import type { Problem, ProblemCode } from "./generated/wire.js";

/** `network`: no answer. `protocol`: an answer that is none of Tokenrail's. */
export type ErrorCode = ProblemCode | "network" | "protocol";

export interface ErrorDetails {
  retryable?: boolean | undefined;
  status?: number | undefined;
  problem?: Problem | undefined;
  retryAfterMs?: number | undefined;
  cause?: unknown;
}

/** Everything that this library throws, but for the reason of an `AbortSignal`. Branch on `code`. */
export class TokenrailError extends Error {
  override readonly name = "TokenrailError";
  readonly code: ErrorCode;
  /** The same may succeed later. */
  readonly retryable: boolean;
  /** The HTTP status, where there was an answer. */
  readonly status: number | undefined;
  /** The server's own words, with the fields that are wrong and the id of the request. */
  readonly problem: Problem | undefined;
  /** How long the server asks to wait. */
  readonly retryAfterMs: number | undefined;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.retryable = details.retryable ?? false;
    this.status = details.status;
    this.problem = details.problem;
    this.retryAfterMs = details.retryAfterMs;
  }
}

/** An answer that is no success. */
export async function refusal(response: Response, signal?: AbortSignal): Promise<TokenrailError> {
  const seconds = Number(response.headers.get("Retry-After") ?? Number.NaN);
  const retryAfterMs = Number.isFinite(seconds) ? seconds * 1000 : undefined;
  const { status } = response;
  const isProblem = response.headers.get("Content-Type")?.startsWith("application/problem+json");
  try {
    if (isProblem) {
      const problem = (await jsonOf(response, signal)) as Problem;
      const message = problem.errors?.length
        ? problem.errors.map((error) => `${error.pointer ?? error.parameter ?? ""} ${error.detail}`.trim()).join("; ")
        : problem.detail;
      return new TokenrailError(problem.code, message, { retryable: problem.retryable, status, problem, retryAfterMs });
    }
  } catch {
    signal?.throwIfAborted();
    // A body that breaks off: the status is what there is.
  }
  return new TokenrailError("protocol", `the server answered ${status}`, { retryable: status >= 500, status, retryAfterMs });
}

/** No answer came at all. */
export function unreachable(cause: unknown): TokenrailError {
  return new TokenrailError("network", "cannot reach the server", { retryable: true, cause });
}

export function asError(thrown: unknown): TokenrailError {
  if (thrown instanceof TokenrailError) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new TokenrailError("protocol", message, { cause: thrown });
}
