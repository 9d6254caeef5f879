// One WebSocket that reconnects. It uses a new ticket for each attempt, increases the pauses, and checks that the
// connection is alive.
import { Backoff, type BackoffOptions } from "./backoff.js";
import { TokenrailError, asError } from "./errors.js";
import { type ClientFrame, type PlainFrame, readFrames } from "./frames.js";
import type { Ticket } from "./generated/wire.js";
import type { Rest } from "./rest.js";
import { after, timer } from "./timers.js";

/** The server sends something every 15 seconds. After this time without a message, the client sends a ping. */
const SILENCE_MS = 20_000;
/** How long the server may take to answer a ping, and to accept a connection. */
const ANSWER_MS = 10_000;
/** How long an unused connection stays open. A page that changes its view needs it again immediately. */
const LINGER_MS = 500;
/** With a close code from here on, the server does not accept the client again. */
const FINAL_CLOSE = 4500;
const OPEN = 1;

/** The part of a `WebSocket` that this library uses. Browsers and the package `ws` have it. */
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
  /** In the state `waiting`: the length of the current pause, in milliseconds. */
  readonly retryInMs?: number;
  /** Why the connection was lost, or cannot be made. */
  readonly error?: TokenrailError;
}

/** Receives what arrives over the socket. */
export interface SocketOwner {
  opened(): void;
  heard(frame: PlainFrame): void;
  /** The connection will not be re-established. */
  failed(error: TokenrailError): void;
}

export interface SocketOptions {
  rest: Rest;
  WebSocket: WebSocketConstructor;
  backoff?: BackoffOptions | undefined;
  /** Ask the server to collect frames for this many milliseconds. */
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
  /** Aborts the current attempt. */
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

  /** Keeps the connection open until the returned function is called. */
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
        // A connection that is already closed keeps its error.
        if (this.#snapshot.state !== "closed") this.close();
      });
    };
  }

  /** Sends the frame now or not at all. The owner sends its frames again when the socket opens. */
  send(frame: ClientFrame): void {
    if (this.#snapshot.state !== "open") return;
    this.#socket?.send(JSON.stringify(frame));
  }

  /**
   * The network may be back, or the machine may have woken up. Retry immediately, and check a connection that seems
   * open.
   */
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

  /** A ticket can be used once within 30 seconds, so each attempt has its own. */
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
      // The pause is reset by the first message, not by the opening: a server that accepts and drops connections must
      // not be contacted at full speed.
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
    // Each error is followed by a close, which has more information.
    socket.onerror = () => {};
  }

  /** Checks again when the silence would be too long. Timers of a sleeping tab fire late, which does no harm here. */
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
    // No connection keeps a Node process alive until then, so the timer must.
    this.#cancelTimer = timer(retryInMs, () => void this.#connect());
    this.#become({ state: "waiting", retryInMs, error });
  }

  #fail(error: TokenrailError): void {
    // The owner gets the error first. It then releases the connection, and a listener of the state may need it again.
    this.#owner.failed(error);
    this.close(error);
  }

  /** Releases the socket, the attempt and the timer. Nothing that they still report is handled. */
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
  return new TokenrailError("protocol", `the server closed the connection for good (close code ${code}), so the client does not connect again`);
}
