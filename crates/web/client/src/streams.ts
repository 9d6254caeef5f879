// Event streams in the place of a WebSocket, for a runtime that has none, such as Node 20. Each followed agent has a
// stream of its own, and its blocks become the frames that the server would send over a WebSocket.
import { piecesOf } from "./body.js";
import { type TokenrailError, asError } from "./errors.js";
import type { AgentEvent, ClientFrame, PlainFrame } from "./frames.js";
import type { Agent, AgentDeltas } from "./generated/wire.js";
import type { Rest } from "./rest.js";
import type { WebSocketConstructor, WebSocketLike } from "./socket.js";
import { timer } from "./timers.js";

/** No stream carries the lifecycle events of all agents. At this interval, their watchers are told to load the list. */
const NEWS_MS = 5_000;
const [CONNECTING, OPEN, CLOSED] = [0, 1, 3];
/** The close code of a connection that was lost. */
const LOST = 1006;

/** A class that behaves like `WebSocket`, and uses event streams. */
export function eventStreams(rest: Rest): WebSocketConstructor {
  return class extends EventStreams {
    constructor() {
      super(rest);
    }
  };
}

class EventStreams implements WebSocketLike {
  readyState = CONNECTING;
  onopen: WebSocketLike["onopen"] = null;
  onmessage: WebSocketLike["onmessage"] = null;
  onclose: WebSocketLike["onclose"] = null;
  onerror: WebSocketLike["onerror"] = null;
  readonly #rest: Rest;
  /** Ends the stream of each followed agent. */
  readonly #streams = new Map<string, AbortController>();
  /** Ends all questions whether the server responds. */
  readonly #leaving = new AbortController();
  #cancelNews = () => {};

  constructor(rest: Rest) {
    this.#rest = rest;
    // The owner sets its listeners first.
    queueMicrotask(() => void this.#open());
  }

  send(data: string): void {
    const frame = JSON.parse(data) as ClientFrame;
    if (frame.type === "subscribe") void this.#follow(frame.payload.agentId, frame.payload.since);
    else if (frame.type === "unsubscribe") this.#leave(frame.payload.agentId);
    else void this.#probe();
  }

  close(): void {
    this.readyState = CLOSED;
    this.#cancelNews();
    this.#leaving.abort();
    for (const agentId of [...this.#streams.keys()]) this.#leave(agentId);
  }

  /** A stream needs no connection of its own, so the server is asked whether it is there. */
  async #open(): Promise<void> {
    if (this.readyState === CLOSED || !(await this.#isThere())) return;
    this.readyState = OPEN;
    this.#awaitNews();
    this.onopen?.({} as never);
  }

  /** The owner takes each frame as a sign of life, so there are news only if the server responds. */
  #awaitNews(): void {
    this.#cancelNews = timer(NEWS_MS, async () => {
      if (!(await this.#isThere())) return;
      this.#awaitNews();
      this.#hear({ type: "error", payload: { code: "news_lagged", message: "lifecycle events may have been missed: reload the list of agents", retryable: true } });
    });
  }

  /** Whether the server responds. If not, the connection is lost. */
  async #isThere(): Promise<boolean> {
    try {
      await this.#rest.send("/healthz", { signal: this.#leaving.signal });
    } catch (thrown) {
      const { status = 0 } = asError(thrown);
      // A server that refuses the request is there. A proxy says with 5xx that it is not.
      if (status < 400 || status >= 500) this.#lose();
    }
    return this.readyState !== CLOSED;
  }

  async #follow(agentId: string, since: number): Promise<void> {
    this.#leave(agentId);
    const leaving = new AbortController();
    this.#streams.set(agentId, leaving);
    const { signal } = leaving;
    const path = `/api/agents/${encodeURIComponent(agentId)}`;
    try {
      const { head, status } = await this.#rest.json<Agent>(path, { signal });
      const query = { since, packed: true, unnamed: true, keep: true };
      const response = await this.#rest.send(`${path}/events`, { query, accept: "text/event-stream", signal });
      this.#hear({ type: "subscribed", payload: { agentId, head, status } });
      await this.#read(agentId, response, signal);
      // The stream was lost, or the server shuts down, or the agent was deleted.
      if (await this.#isDeleted(path, signal)) {
        this.#hear({ type: "agent:deleted", payload: { agentId, timestamp: new Date().toISOString() } });
      } else this.#lose();
    } catch (thrown) {
      if (!signal.aborted) this.#refused(agentId, asError(thrown));
    }
  }

  /** Reads until the stream ends or breaks. */
  async #read(agentId: string, response: Response, signal: AbortSignal): Promise<void> {
    try {
      for await (const data of blocksOf(response, signal)) {
        if (signal.aborted) return;
        const item = JSON.parse(data) as AgentEvent | AgentDeltas;
        if ("texts" in item) this.#hear({ type: "agent:deltas", payload: item });
        else this.#hear({ type: "agent:message", payload: { agentId, sequence: item.sequenceNumber, message: item, timestamp: item.createdAt } });
      }
    } catch {
      signal.throwIfAborted();
    }
  }

  async #isDeleted(path: string, signal: AbortSignal): Promise<boolean> {
    try {
      const { deletedAt } = await this.#rest.json<Agent>(path, { signal });
      return deletedAt !== undefined;
    } catch (thrown) {
      signal.throwIfAborted();
      return asError(thrown).status === 404;
    }
  }

  #refused(agentId: string, { code, message, retryable }: TokenrailError): void {
    if (code === "network") this.#lose();
    else this.#hear({ type: "error", payload: { agentId, code, message, retryable } as Extract<PlainFrame, { type: "error" }>["payload"] });
  }

  async #probe(): Promise<void> {
    if (await this.#isThere()) this.#hear({ type: "pong", payload: {} });
  }

  #leave(agentId: string): void {
    this.#streams.get(agentId)?.abort();
    this.#streams.delete(agentId);
  }

  #hear(frame: Untimed): void {
    if (this.readyState === OPEN) this.onmessage?.({ data: JSON.stringify(frame) } as never);
  }

  #lose(): void {
    if (this.readyState === CLOSED) return;
    this.close();
    this.onclose?.({ code: LOST } as never);
  }
}

/** A frame of the server without its time, which the client does not use. */
type Untimed = PlainFrame extends infer F ? (F extends PlainFrame ? Omit<F, "timestamp"> : never) : never;

/** The data of each block. Line ends are LF, and a block has at most one line of data. */
async function* blocksOf(response: Response, signal: AbortSignal): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const piece of piecesOf(response, signal)) {
    const blocks = (rest + decoder.decode(piece, { stream: true })).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const line = block.split("\n").find((each) => each.startsWith("data: "));
      if (line) yield line.slice("data: ".length);
    }
  }
}
