// Sends requests. It adds the token, turns problems into errors, and repeats requests that can be repeated safely.
import { Backoff } from "./backoff.js";
import { chunksOf, jsonOf } from "./body.js";
import { TokenrailError, refusal, unreachable } from "./errors.js";
import { after, pause } from "./timers.js";

/** How long a response may take to begin. A file may take longer. */
const ANSWER_MS = 30_000;
/** A body that is longer may take longer to arrive: a message with images. */
const LONG_BODY = 1_000_000;
/** How many times a request that can be repeated safely is sent. */
const ATTEMPTS = 4;
/** If the server or a proxy asks for a longer wait, the caller decides. */
const WAIT_MAX_MS = 10_000;

export type Token = string | (() => string | Promise<string>);

export interface RestOptions {
  baseUrl: string;
  token?: Token | undefined;
  fetch: typeof globalThis.fetch;
}

export interface Request {
  method?: "GET" | "POST" | "PATCH" | "DELETE";
  query?: Record<string, string | number | boolean | undefined> | undefined;
  /** The form of the response. Default: JSON. */
  accept?: string | undefined;
  body?: unknown;
  /** A body that is already JSON. */
  file?: Blob | string | undefined;
  idempotencyKey?: string | undefined;
  signal?: AbortSignal | undefined;
}

export class Rest {
  readonly baseUrl: string;
  readonly #token: Token | undefined;
  readonly #fetch: typeof globalThis.fetch;

  constructor({ baseUrl, token, fetch }: RestOptions) {
    this.baseUrl = baseUrl.replace(/\/+$/, "");
    this.#token = token;
    this.#fetch = fetch;
  }

  get hasToken(): boolean {
    return this.#token !== undefined && this.#token !== "";
  }

  /** The JSON of a response. */
  json<T>(path: string, request: Request = {}): Promise<T> {
    return this.#again(request, async () => body<T>(await this.#once(path, request), request.signal));
  }

  /** A successful response. Its body may still be arriving. */
  send(path: string, request: Request = {}): Promise<Response> {
    return this.#again(request, () => this.#once(path, request));
  }

  /** A request with an `Idempotency-Key` takes effect only once, so it is sent again if its outcome is unknown. */
  async #again<T>(request: Request, once: () => Promise<T>): Promise<T> {
    const backoff = new Backoff({ firstMs: 300, maxMs: 5_000 });
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await once();
      } catch (error) {
        const again = request.idempotencyKey !== undefined && attempt < ATTEMPTS && isUnknown(error);
        if (!again || (error.retryAfterMs ?? 0) > WAIT_MAX_MS) throw error;
        await pause(backoff.next(error.retryAfterMs), request.signal);
      }
    }
  }

  async #once(path: string, { method = "GET", query, accept, body, file, idempotencyKey, signal }: Request): Promise<Response> {
    const headers: Record<string, string> = {};
    const token = typeof this.#token === "function" ? await this.#token() : this.#token;
    if (token) headers["Authorization"] = `Bearer ${token}`;
    if (accept !== undefined) headers["Accept"] = accept;
    if (idempotencyKey !== undefined) headers["Idempotency-Key"] = idempotencyKey;
    const content = file ?? (body === undefined ? undefined : JSON.stringify(body));
    if (content !== undefined) headers["Content-Type"] = "application/json";
    const response = await this.#answer(`${this.baseUrl}${path}${queryOf(query)}`, { method, headers, body: content ?? null }, signal);
    if (!response.ok) throw await refusal(response, signal);
    return response;
  }

  async #answer(address: string, init: RequestInit, signal: AbortSignal | undefined): Promise<Response> {
    signal?.throwIfAborted();
    const silent = new AbortController();
    const isLong = init.body instanceof Blob || (typeof init.body === "string" && init.body.length > LONG_BODY);
    const cancelTimer = isLong ? () => {} : after(ANSWER_MS, () => silent.abort());
    try {
      return await this.#fetch(address, { ...init, signal: signal ? AbortSignal.any([signal, silent.signal]) : silent.signal });
    } catch (cause) {
      signal?.throwIfAborted();
      throw unreachable(cause);
    } finally {
      cancelTimer();
    }
  }
}

/** The JSON of a response. */
export function body<T>(response: Response, signal: AbortSignal | undefined): Promise<T> {
  return whole(jsonOf(response, signal) as Promise<T>, signal);
}

/** A response as a file. */
export async function blob(response: Response, signal: AbortSignal | undefined): Promise<Blob> {
  const chunks = await whole(chunksOf(response, signal), signal);
  return new Blob(chunks, { type: response.headers.get("Content-Type") ?? "" });
}

/** Fails if the body breaks off or pauses for too long. */
async function whole<T>(read: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  try {
    return await read;
  } catch (cause) {
    signal?.throwIfAborted();
    throw unreachable(cause);
  }
}

/** Whether the outcome of the request is unknown, or the server was too busy to process it. */
function isUnknown(error: unknown): error is TokenrailError {
  if (!(error instanceof TokenrailError)) return false;
  // A proxy that gives up does not know whether the server has processed the request. Nor does a server that was stopped.
  const isFromElsewhere = error.code === "protocol" && [408, 502, 503, 504].includes(error.status ?? 0);
  return isFromElsewhere || error.code === "network" || error.code === "outcome_unknown" || error.code === "store_busy";
}

function queryOf(query: Request["query"]): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) if (value !== undefined) pairs.set(name, String(value));
  const text = pairs.toString();
  return text && `?${text}`;
}

/** The path and query of the next page, from the `Link` header. */
export function nextPage(response: Response): string | undefined {
  return /<([^>]+)>;\s*rel="next"/.exec(response.headers.get("Link") ?? "")?.[1];
}

/** A random key for a request that must take effect only once. `randomUUID` is missing on a page without TLS. */
export function freshKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
