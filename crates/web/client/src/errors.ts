import { jsonOf } from "./body.js";
import type { Problem, ProblemCode } from "./generated/wire.js";

/** `network`: no response. `protocol`: a response that does not follow Tokenrail's protocol. */
export type ErrorCode = ProblemCode | "network" | "protocol";

export interface ErrorDetails {
  retryable?: boolean | undefined;
  status?: number | undefined;
  problem?: Problem | undefined;
  retryAfterMs?: number | undefined;
  cause?: unknown;
}

/** Every error that this library throws, except the reason of an `AbortSignal`. Branch on `code`. */
export class TokenrailError extends Error {
  override readonly name = "TokenrailError";
  readonly code: ErrorCode;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  /** The HTTP status, if there was a response. */
  readonly status: number | undefined;
  /** The problem as the server sent it, with the invalid fields and the id of the request. */
  readonly problem: Problem | undefined;
  /** How long the server asks the client to wait, in milliseconds. */
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

/** The error for a response that is not a success. */
export async function refusal(response: Response, signal?: AbortSignal): Promise<TokenrailError> {
  const seconds = Number(response.headers.get("Retry-After") ?? Number.NaN);
  const retryAfterMs = Number.isFinite(seconds) ? seconds * 1000 : undefined;
  const { status } = response;
  const isProblem = response.headers.get("Content-Type")?.startsWith("application/problem+json");
  try {
    if (isProblem) {
      const problem = (await jsonOf(response, signal)) as Problem;
      const message = problem.errors?.length
        ? problem.errors.map(sentenceOf).join("; ")
        : problem.detail;
      return new TokenrailError(problem.code, message, { retryable: problem.retryable, status, problem, retryAfterMs });
    }
  } catch {
    signal?.throwIfAborted();
    // The body broke off, so only the status is known.
  }
  return new TokenrailError("protocol", `the server responded with status ${status}`, { retryable: isPassing(status), status, retryAfterMs });
}

/** Whether a proxy or a server that was stopped for a while answers like this: 408 if the request was too slow for it. */
function isPassing(status: number): boolean {
  return status >= 500 || [408, 425, 429].includes(status);
}

/** An error of a field in one line, in the words of the command line. */
function sentenceOf({ pointer, parameter, detail }: NonNullable<Problem["errors"]>[number]): string {
  const place = (pointer ?? parameter ?? "").replace(/^\//, "");
  return place === "" ? detail : `${place}: ${detail}`;
}

/** The error if there was no response. */
export function unreachable(cause: unknown): TokenrailError {
  return new TokenrailError("network", "cannot reach the server", { retryable: true, cause });
}

export function asError(thrown: unknown): TokenrailError {
  if (thrown instanceof TokenrailError) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new TokenrailError("protocol", message, { cause: thrown });
}
