// The current conversation of one agent, for any view. It reads the newest messages, the whole history and then live
// events, and notifies its listeners once per frame.
import { Backoff } from "./backoff.js";
import type { Client, Page } from "./api.js";
import { type TokenrailError, asError } from "./errors.js";
import type { AgentEvent } from "./frames.js";
import type { Agent } from "./generated/wire.js";
import { type Scheduler, nextFrame, whenIdle } from "./schedule.js";
import { pause } from "./timers.js";
import { type Transcript, advance, applyEvents, emptyTranscript } from "./transcript/index.js";

export interface ConversationSnapshot {
  /** While the history is loading: only the newest messages, or none. */
  readonly transcript: Transcript;
  /** Whether the history is still being loaded. */
  readonly loading: boolean;
  readonly error: TokenrailError | undefined;
  readonly agent: Agent | undefined;
}

/** The events after which the agent itself has changed. */
const CHANGES: ReadonlySet<string> = new Set(["user_message", "result", "error", "init"]);
/**
 * How many of the newest events are requested separately. They are shown first, while the rest is being loaded. If most
 * of them are deltas of a few messages, the larger number is requested.
 */
const NEWEST = [60, 300] as const;
/** This many events that are not deltas fill any window. */
const WINDOWFUL = 24;
/** Deltas are left out: for a message that began earlier, they would be only its end. */
const UNFINISHED: ReadonlySet<string> = new Set(["content_delta", "thinking_delta", "tool_input_delta", "abandoned"]);
const EMPTY: ConversationSnapshot = { transcript: emptyTranscript, loading: true, error: undefined, agent: undefined };

export class Conversation {
  readonly #client: Client;
  readonly #id: string;
  readonly #schedule: Scheduler;
  readonly #listeners = new Set<() => void>();
  #snapshot = EMPTY;
  /** Everything that was read from the beginning, without gaps. */
  #history = emptyTranscript;
  /** Whether the shown transcript contains the whole history. */
  #isWhole = false;
  #pending: AgentEvent[] = [];
  #cancelFlush: (() => void) | undefined;
  #run: AbortController | undefined;
  /** Resolves when a component shows the conversation. */
  #wanted: Promise<void> | undefined;
  #want = () => {};
  /** The signal of the run that receives the news. */
  #watched: AbortSignal | undefined;
  /** The agent is being requested. If it changed meanwhile, it is requested again. */
  #asking = false;
  #askAgain = false;

  constructor(client: Client, id: string, schedule: Scheduler = nextFrame) {
    this.#client = client;
    this.#id = id;
    this.#schedule = schedule;
  }

  /** Returns the same object until something changes. */
  snapshot = (): ConversationSnapshot => this.#snapshot;

  /** Starts, or continues after a stop. */
  start(): void {
    this.preload();
    this.#want();
  }

  /** Reads what is shown first. The rest is read after `start`. */
  preload(): void {
    if (this.#run) return;
    this.#wanted = new Promise((resolve) => {
      this.#want = resolve;
    });
    const run = new AbortController();
    this.#run = run;
    void this.#follow(run.signal);
  }

  stop(): void {
    this.#run?.abort();
    this.#run = undefined;
    this.#want();
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    this.#pending = [];
  }

  /** Reads everything again from the beginning. */
  refetch = (): void => {
    this.stop();
    this.#isWhole = false;
    this.#history = emptyTranscript;
    this.#become({ ...EMPTY, agent: this.#snapshot.agent });
    this.start();
  };

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  async #follow(signal: AbortSignal): Promise<void> {
    try {
      await this.#load(signal);
      // The connection is made only when a component shows the conversation. Earlier, it would delay the first
      // messages.
      await this.#wanted;
      this.#watchOnce(signal);
      const since = this.#snapshot.transcript.last;
      for await (const event of this.#client.follow(this.#id, { since, signal })) {
        this.#pending.push(event);
        this.#cancelFlush ??= this.#schedule(this.#flush);
      }
      if (!signal.aborted) void this.#askForAgent(signal);
    } catch (thrown) {
      this.#fail(thrown, signal);
    }
  }

  #fail(thrown: unknown, signal: AbortSignal): void {
    if (signal.aborted) return;
    this.#flush();
    this.stop();
    this.#become({ ...this.#snapshot, loading: false, error: asError(thrown) });
  }

  /** Loads the history. An error that may be temporary is reported, and loading is retried. */
  async #load(signal: AbortSignal): Promise<void> {
    if (this.#isWhole) this.#history = this.#snapshot.transcript;
    const backoff = new Backoff();
    for (;;) {
      try {
        return await this.#loadOnce(signal);
      } catch (thrown) {
        const error = asError(thrown);
        if (signal.aborted || !error.retryable) throw thrown;
        this.#become({ ...this.#snapshot, error });
        // Following the news shows the state of the connection, and when the server is reachable again.
        this.#watchOnce(signal);
        await pause(backoff.next(error.retryAfterMs), signal);
      }
    }
  }

  async #loadOnce(signal: AbortSignal): Promise<void> {
    const agent = this.#askForAgent(signal);
    const isAll = this.#snapshot.transcript === emptyTranscript && (await this.#newest(signal));
    while (!isAll && !(await this.#page(signal)));
    await agent;
    signal.throwIfAborted();
    this.#isWhole = true;
    this.#become({ ...this.#snapshot, transcript: this.#history, loading: false, error: undefined });
  }

  /** Reads the next page of the history. Returns whether it was the last one. */
  async #page(signal: AbortSignal): Promise<boolean> {
    const since = this.#history.last;
    const page = await this.#client.messagesPage(this.#id, { since, signal });
    signal.throwIfAborted();
    return this.#add(page);
  }

  /** Adds a page that follows the history. Returns whether it was the last one. */
  #add({ messages, since, upTo, head }: Page): boolean {
    this.#history = advance(applyEvents(this.#history, messages), upTo);
    return upTo >= head || upTo <= since;
  }

  /** Shows the end of a long history before the rest is loaded. Returns whether that was the whole history. */
  async #newest(signal: AbortSignal): Promise<boolean> {
    let finished: AgentEvent[] = [];
    for (const last of NEWEST) {
      const page = await this.#client.messagesPage(this.#id, { last, signal });
      signal.throwIfAborted();
      // If the history is short, or if the server does not support `last`, this page is the beginning of the history.
      if (page.since <= this.#history.last) return this.#add(page);
      // If the server returns shorter pages, this page does not reach the end.
      if (page.upTo < page.head) break;
      finished = page.messages.filter((event) => !UNFINISHED.has(event.metadata.eventType));
      if (finished.length >= WINDOWFUL) break;
    }
    if (finished.length === 0) return false;
    this.#become({ ...this.#snapshot, transcript: applyEvents(emptyTranscript, finished), error: undefined });
    // The newest messages appear sooner if nothing else is read meanwhile.
    await this.#wanted;
    await whenIdle();
    signal.throwIfAborted();
    return false;
  }

  #flush = (): void => {
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    const events = this.#pending;
    this.#pending = [];
    const transcript = applyEvents(this.#snapshot.transcript, events);
    if (transcript !== this.#snapshot.transcript) this.#become({ ...this.#snapshot, transcript });
    const signal = this.#run?.signal;
    if (signal && events.some((event) => CHANGES.has(event.metadata.eventType))) void this.#askForAgent(signal);
  };

  #watchOnce(signal: AbortSignal): void {
    if (this.#watched === signal) return;
    this.#watched = signal;
    this.#watch(signal).catch((thrown) => this.#fail(thrown, signal));
  }

  /** Handles changes that no event reports: a queued message, the start of a turn, the end of the agent. */
  async #watch(signal: AbortSignal): Promise<void> {
    for await (const news of this.#client.watch({ signal })) {
      const isOurs = news.type === "reset" || (news.type !== "created" && news.agentId === this.#id);
      if (isOurs) void this.#askForAgent(signal);
    }
  }

  async #askForAgent(signal: AbortSignal): Promise<void> {
    this.#askAgain = this.#asking;
    if (this.#asking) return;
    this.#asking = true;
    try {
      const agent = await this.#client.agent(this.#id, { signal });
      if (!signal.aborted) this.#become({ ...this.#snapshot, agent });
    } catch {
      // An error is ignored here: the request for the history reports it.
    } finally {
      this.#asking = false;
    }
    if (this.#askAgain && !signal.aborted) void this.#askForAgent(signal);
  }

  #become(snapshot: ConversationSnapshot): void {
    this.#snapshot = snapshot;
    for (const listener of [...this.#listeners]) listener();
  }
}
