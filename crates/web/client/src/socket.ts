// One WebSocket that comes back: a ticket for each attempt, pauses that grow, and a check that it is still alive.
import { Backoff, type BackoffOptions } from "./backoff.js";
import { TokenrailError, asError } from "./errors.js";
import { type ClientFrame, type PlainFrame, readFrames } from "./frames.js";
import type { Ticket } from "./generated/wire.js";
import type { Rest } from "./rest.js";
import { after, timer } from "./timers.js";

/** The server says something every 15 seconds; after this long without a word it is asked whether it is there. */
const SILENCE_MS = 20_000;
/** How long it has to answer, and to take a connection. */
const ANSWER_MS = 10_000;
/** How long a connection stays that nobody needs: a page that changes its view needs it again at once. */
const LINGER_MS = 500;
/** Close codes from here on mean: do not come again. */
const FINAL_CLOSE = 4500;
const OPEN = 1;

/** What this library needs of a `WebSocket`; the browser's and that of the package `ws` have it. */
export interface WebSocketLike {
  readonly readyState: number;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
  send(data: string): void;
  close(code?: number, reason?: string): void;
}
export type WebSocketConstructor = new (url: string) => WebSocketLike;

export type ConnectionState = "connecting" | "open" | "waiting" | "closed";

export interface ConnectionSnapshot {
  readonly state: ConnectionState;
  /** While it waits: how long, when it began to wait. */
  readonly retryInMs?: number;
  /** Why it was lost, or cannot be made. */
  readonly error?: TokenrailError;
}

/** Who is told what comes over the socket. */
export interface SocketOwner {
  opened(): void;
  heard(frame: PlainFrame): void;
  /** It will not come back. */
  failed(error: TokenrailError): void;
}

export interface SocketOptions {
  rest: Rest;
  WebSocket: WebSocketConstructor | undefined;
  backoff?: BackoffOptions | undefined;
  /** Ask the server to collect frames for so long. */
  batchMs?: number | undefined;
}

export class Socket {
  readonly #options: SocketOptions;
  readonly #owner: SocketOwner;
  readonly #backoff: Backoff;
  readonly #listeners = new Set<() => void>();
  #snapshot: ConnectionSnapshot = { state: "closed" };
  #holds = 0;
  #socket: WebSocketLike | undefined;
  /** Ends the attempt that is being made. */
  #attempt: AbortController | undefined;
  #lastHeard = 0;
  #cancelTimer = () => {};
  #cancelLinger = () => {};
  #stopListening = () => {};

  constructor(options: SocketOptions, owner: SocketOwner) {
    this.#options = options;
    this.#owner = owner;
    this.#backoff = new Backoff(options.backoff);
  }

  snapshot(): ConnectionSnapshot {
    return this.#snapshot;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Somebody needs the connection; call the answer when they no longer do. */
  hold(): () => void {
    this.#holds += 1;
    this.#cancelLinger();
    if (this.#holds === 1) this.#stopListening = onWaking(() => this.wake());
    if (this.#snapshot.state === "closed") void this.#connect();
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#holds -= 1;
      if (this.#holds > 0) return;
      this.#stopListening();
      this.#cancelLinger = after(LINGER_MS, () => {
        // One that is closed already says why.
        if (this.#snapshot.state !== "closed") this.close();
      });
    };
  }

  /** Said now or not at all: whoever needs it said after a loss says it when the socket opens. */
  send(frame: ClientFrame): void {
    if (this.#snapshot.state !== "open") return;
    this.#socket?.send(JSON.stringify(frame));
  }

  /** The network may be back, or the machine awake: do not wait any longer, and do not trust what seems open. */
  wake(): void {
    if (this.#snapshot.state === "waiting") void this.#connect();
    else if (this.#snapshot.state === "open") this.#ask();
  }

  close(error?: TokenrailError): void {
    this.#cancelLinger();
    this.#forget();
    this.#become(error ? { state: "closed", error } : { state: "closed" });
  }

  async #connect(): Promise<void> {
    this.#forget();
    const { WebSocket } = this.#options;
    // Not before whoever needs it knows how to let go of it.
    if (!WebSocket) return queueMicrotask(() => this.#fail(noWebSocket()));
    const attempt = new AbortController();
    this.#attempt = attempt;
    this.#become({ state: "connecting" });
    this.#cancelTimer = after(ANSWER_MS, () => this.#lost(silent()));
    try {
      const address = await this.#address(attempt.signal);
      if (attempt.signal.aborted) return;
      this.#open(new WebSocket(address));
    } catch (thrown) {
      if (attempt.signal.aborted) return;
      const error = asError(thrown);
      if (error.retryable) this.#lost(error);
      else this.#fail(error);
    }
  }

  /** A ticket is good for one use within 30 seconds: each attempt has its own. */
  async #address(signal: AbortSignal): Promise<string> {
    const { rest, batchMs } = this.#options;
    const query = new URLSearchParams({ dialect: "agent", packed: "true" });
    if (batchMs !== undefined) query.set("batch", String(batchMs));
    if (rest.hasToken) {
      const { ticket } = await rest.json<Ticket>("/api/tickets", { method: "POST", body: { path: "/ws" }, signal });
      query.set("ticket", ticket);
    }
    return `${rest.baseUrl.replace(/^http/, "ws")}/ws?${query}`;
  }

  #open(socket: WebSocketLike): void {
    this.#socket = socket;
    socket.onopen = () => {
      this.#lastHeard = Date.now();
      this.#watch(SILENCE_MS);
      this.#become({ state: "open" });
      this.#owner.opened();
    };
    socket.onmessage = ({ data }: { data?: unknown }) => {
      this.#lastHeard = Date.now();
      // Not when it opens: a server that takes connections and drops them must not be asked at full speed.
      this.#backoff.reset();
      for (const frame of readFrames(data)) {
        if (this.#socket !== socket) return;
        this.#owner.heard(frame);
      }
    };
    socket.onclose = ({ code }: { code?: number }) => {
      if (code !== undefined && code >= FINAL_CLOSE && code < 5000) this.#fail(closedFor(code));
      else this.#lost(new TokenrailError("network", "the connection was lost", { retryable: true }));
    };
    // A close comes after each error, and says more.
    socket.onerror = () => {};
  }

  /** Looks again when the silence would be too long. Timers of a sleeping tab come late, which does no harm here. */
  #watch(inMs: number): void {
    this.#cancelTimer();
    this.#cancelTimer = after(inMs, () => {
      const left = this.#lastHeard + SILENCE_MS - Date.now();
      if (left > 0) this.#watch(left);
      else this.#ask();
    });
  }

  #ask(): void {
    const asked = Date.now();
    this.send({ type: "ping" });
    this.#cancelTimer();
    this.#cancelTimer = after(ANSWER_MS, () => {
      if (this.#lastHeard >= asked) this.#watch(SILENCE_MS);
      else this.#lost(silent());
    });
  }

  #lost(error: TokenrailError): void {
    this.#forget();
    if (this.#holds === 0) return this.#become({ state: "closed" });
    const retryInMs = this.#backoff.next(error.retryAfterMs);
    // There is no connection that would keep a Node process alive until then.
    this.#cancelTimer = timer(retryInMs, () => void this.#connect());
    this.#become({ state: "waiting", retryInMs, error });
  }

  #fail(error: TokenrailError): void {
    // First: who is told so lets go of it, and a listener of the state may need it again.
    this.#owner.failed(error);
    this.close(error);
  }

  /** Lets go of socket, attempt and timer; nothing that they still have to say is heard. */
  #forget(): void {
    this.#cancelTimer();
    this.#attempt?.abort();
    this.#attempt = undefined;
    const socket = this.#socket;
    this.#socket = undefined;
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    if (socket.readyState <= OPEN) socket.close(1000);
  }

  #become(snapshot: ConnectionSnapshot): void {
    const same = snapshot.state === "closed" && this.#snapshot.state === "closed" && snapshot.error === this.#snapshot.error;
    if (same) return;
    this.#snapshot = snapshot;
    for (const listener of [...this.#listeners]) listener();
  }
}

function onWaking(wake: () => void): () => void {
  const { document, addEventListener, removeEventListener } = globalThis as Partial<typeof globalThis>;
  if (!addEventListener || !removeEventListener) return () => {};
  const seen = () => document?.visibilityState === "visible" && wake();
  addEventListener("online", wake);
  document?.addEventListener("visibilitychange", seen);
  return () => {
    removeEventListener("online", wake);
    document?.removeEventListener("visibilitychange", seen);
  };
}

function silent(): TokenrailError {
  return new TokenrailError("network", "the server does not respond", { retryable: true });
}

function closedFor(code: number): TokenrailError {
  return new TokenrailError("protocol", `the server closed the connection and will not accept it again (close code ${code})`);
}

function noWebSocket(): TokenrailError {
  return new TokenrailError("protocol", "WebSocket is not available: pass an implementation to the client, for example from the package ws");
}
