// One agent's conversation as it stands, for any view: its newest messages, the whole history, then live, told once per
// frame.
import { Backoff } from "./backoff.js";
import type { Client, Page } from "./client.js";
import { type TokenrailError, asError } from "./errors.js";
import type { AgentEvent } from "./frames.js";
import type { Agent } from "./generated/wire.js";
import { type Scheduler, nextFrame, whenIdle } from "./schedule.js";
import { pause } from "./timers.js";
import { type Transcript, advance, applyEvents, emptyTranscript } from "./transcript/index.js";

export interface ConversationSnapshot {
  /** While it is loading: the newest messages alone, or nothing. */
  readonly transcript: Transcript;
  /** Its history is not here yet. */
  readonly loading: boolean;
  readonly error: TokenrailError | undefined;
  readonly agent: Agent | undefined;
}

/** The events after which the agent itself has changed. */
const CHANGES: ReadonlySet<string> = new Set(["user_message", "result", "error", "init"]);
/**
 * So many of the newest events are asked for by themselves: what is seen first, while the rest is on its way. Where most
 * of them are pieces of a few messages, more are asked for.
 */
const NEWEST = [60, 300] as const;
/** So many events that are no pieces fill any window. */
const WINDOWFUL = 24;
/** What is left out of them: of a message that has begun before, they would be the end alone. */
const UNFINISHED: ReadonlySet<string> = new Set(["content_delta", "thinking_delta", "tool_input_delta", "abandoned"]);
const EMPTY: ConversationSnapshot = { transcript: emptyTranscript, loading: true, error: undefined, agent: undefined };

export class Conversation {
  readonly #client: Client;
  readonly #id: string;
  readonly #schedule: Scheduler;
  readonly #listeners = new Set<() => void>();
  #snapshot = EMPTY;
  /** What has been read from the beginning on, without a hole. */
  #history = emptyTranscript;
  /** The transcript that is shown is all of that. */
  #isWhole = false;
  #pending: AgentEvent[] = [];
  #cancelFlush: (() => void) | undefined;
  #run: AbortController | undefined;
  /** Somebody shows it. */
  #wanted: Promise<void> | undefined;
  #want = () => {};
  /** The run that hears the news. */
  #watched: AbortSignal | undefined;
  /** The agent is being asked for; and asked for again, where it has changed meanwhile. */
  #asking = false;
  #askAgain = false;

  constructor(client: Client, id: string, schedule: Scheduler = nextFrame) {
    this.#client = client;
    this.#id = id;
    this.#schedule = schedule;
  }

  /** The same object until something changes. */
  snapshot = (): ConversationSnapshot => this.#snapshot;

  /** Goes on from where it was, if it was stopped. */
  start(): void {
    this.preload();
    this.#want();
  }

  /** Reads what is seen first. The rest is read when it is started. */
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

  /** From the beginning. */
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
      // A connection is made when there is something to be seen: until then it would be in the way.
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

  /** What may succeed later is tried again, and told meanwhile. */
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
        // It tells how the connection is, and when the server is there again.
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

  /** Reads one page more of the history; whether that was all. */
  async #page(signal: AbortSignal): Promise<boolean> {
    const since = this.#history.last;
    const page = await this.#client.messagesPage(this.#id, { since, signal });
    signal.throwIfAborted();
    return this.#add(page);
  }

  /** Adds a page that goes on where the history ends; whether that was all. */
  #add({ messages, since, upTo, head }: Page): boolean {
    this.#history = advance(applyEvents(this.#history, messages), upTo);
    return upTo >= head || upTo <= since;
  }

  /** Shows the end of a long history before the rest of it is here; whether that was all of it. */
  async #newest(signal: AbortSignal): Promise<boolean> {
    let finished: AgentEvent[] = [];
    for (const last of NEWEST) {
      const page = await this.#client.messagesPage(this.#id, { last, signal });
      signal.throwIfAborted();
      // Of a short history, or of a server that does not know the question, it is the beginning.
      if (page.since <= this.#history.last) return this.#add(page);
      // Of a server whose pages are smaller it is not the end.
      if (page.upTo < page.head) break;
      finished = page.messages.filter((event) => !UNFINISHED.has(event.metadata.eventType));
      if (finished.length >= WINDOWFUL) break;
    }
    if (finished.length === 0) return false;
    this.#become({ ...this.#snapshot, transcript: applyEvents(emptyTranscript, finished), error: undefined });
    // Who sees these first has them sooner when nothing else is read meanwhile.
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

  /** What changes without an event: a message that waits, a turn that begins, an end. */
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
      // The history is asked for as well, and tells what is wrong.
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
