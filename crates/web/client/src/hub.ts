// Many readers over one connection: what each agent's frames are for, and what is to be said when it opens again.
import { Backoff } from "./backoff.js";
import { TokenrailError } from "./errors.js";
import { type EventsAfter, Follower } from "./follower.js";
import type { AgentNews, PlainFrame } from "./frames.js";
import type { AgentStatus, ErrorFrame } from "./generated/wire.js";
import { Socket, type SocketOptions } from "./socket.js";
import { after } from "./timers.js";

const ENDED: ReadonlySet<AgentStatus> = new Set<AgentStatus>(["completed", "failed", "cancelled", "interrupted"]);

export function hasEnded(status: AgentStatus): boolean {
  return ENDED.has(status);
}

/** One agent's subscription, for all of its readers. */
class Feed {
  readonly followers = new Set<Standing>();
  /** Everything up to here has come over the socket, without a hole. */
  last: number;
  /** A subscription was asked for and not yet answered: what still comes belongs to the one before. */
  asked = false;
  readonly backoff = new Backoff();
  cancelRetry = () => {};

  constructor(since: number) {
    this.last = since;
  }
}

/** A place at the hub. */
export interface Seat {
  follower: Follower;
  leave(): void;
}

export class Hub {
  readonly socket: Socket;
  readonly #feeds = new Map<string, Feed>();
  readonly #watchers = new Set<(news: AgentNews) => void>();
  readonly #pages: (agentId: string) => EventsAfter;

  constructor(options: SocketOptions, pages: (agentId: string) => EventsAfter) {
    this.#pages = pages;
    this.socket = new Socket(options, {
      opened: () => this.#opened(),
      heard: (frame) => this.#heard(frame),
      failed: (error) => this.#failed(error),
    });
  }

  follow(agentId: string, since: number, whenSubscribed: (head: number, status: AgentStatus) => void): Seat {
    let feed = this.#feeds.get(agentId);
    if (!feed) {
      feed = new Feed(since);
      this.#feeds.set(agentId, feed);
    }
    const follower = new Standing(since, feed, this.#pages(agentId), whenSubscribed);
    feed.followers.add(follower);
    const release = this.socket.hold();
    if (feed.followers.size === 1) this.#subscribe(agentId, feed);
    else {
      follower.catchUp();
      // Its reader may wait for the news that the agent has ended, which come with an answer.
      this.#subscribe(agentId, feed);
    }
    const leave = () => {
      follower.leave();
      this.#leave(agentId, feed, follower);
      release();
    };
    return { follower, leave };
  }

  watch(watcher: (news: AgentNews) => void): () => void {
    this.#watchers.add(watcher);
    const release = this.socket.hold();
    if (this.socket.snapshot().state === "open") watcher({ type: "reset" });
    return () => {
      this.#watchers.delete(watcher);
      release();
    };
  }

  /** Nobody is told anything any more. */
  end(): void {
    for (const [agentId, feed] of [...this.#feeds]) this.#endFeed(agentId, feed, (follower) => follower.end());
    this.socket.close();
  }

  #failed(error: TokenrailError): void {
    for (const [agentId, feed] of [...this.#feeds]) this.#endFeed(agentId, feed, (follower) => follower.fail(error));
  }

  #leave(agentId: string, feed: Feed, follower: Standing): void {
    feed.followers.delete(follower);
    if (feed.followers.size > 0 || this.#feeds.get(agentId) !== feed) return;
    feed.cancelRetry();
    this.#feeds.delete(agentId);
    this.socket.send({ type: "unsubscribe", payload: { agentId } });
  }

  #endFeed(agentId: string, feed: Feed, end: (follower: Follower) => void): void {
    feed.cancelRetry();
    this.#feeds.delete(agentId);
    for (const follower of [...feed.followers]) end(follower);
  }

  #subscribe(agentId: string, feed: Feed): void {
    feed.cancelRetry();
    feed.asked = true;
    this.socket.send({ type: "subscribe", payload: { agentId, since: feed.last } });
  }

  #opened(): void {
    for (const [agentId, feed] of this.#feeds) this.#subscribe(agentId, feed);
    this.#tell({ type: "reset" });
  }

  #tell(news: AgentNews): void {
    for (const watcher of [...this.#watchers]) watcher(news);
  }

  #heard(frame: PlainFrame): void {
    switch (frame.type) {
      case "agent:message":
        return this.#event(frame.payload.agentId, frame.payload);
      case "subscribed":
        return this.#subscribed(frame.payload);
      case "heartbeat":
        return this.#heads(frame.payload.heads);
      case "error":
        return this.#error(frame.payload);
      case "agent:created":
        return this.#tell({ type: "created", ...frame.payload });
      case "agent:updated":
        return this.#tell({ type: "updated", ...frame.payload });
      case "agent:deleted":
        return this.#deleted(frame);
    }
  }

  #event(agentId: string, { message }: Extract<PlainFrame, { type: "agent:message" }>["payload"]): void {
    const feed = this.#feeds.get(agentId);
    if (!feed || message.sequenceNumber <= feed.last) return;
    if (message.sequenceNumber > feed.last + 1) {
      if (!feed.asked) this.#subscribe(agentId, feed);
      return;
    }
    feed.last = message.sequenceNumber;
    for (const follower of feed.followers) follower.offer(message);
  }

  #subscribed({ agentId, head, status }: Extract<PlainFrame, { type: "subscribed" }>["payload"]): void {
    const feed = this.#feeds.get(agentId);
    if (!feed) return;
    feed.asked = false;
    feed.backoff.reset();
    for (const follower of feed.followers) follower.stands(head, status);
  }

  /** Each event before this frame was sent before it: a number that is not here yet was lost. */
  #heads(heads: Readonly<Record<string, number>>): void {
    for (const [agentId, feed] of this.#feeds) {
      const head = heads[agentId];
      if (head === undefined || head > feed.last) this.#subscribe(agentId, feed);
    }
  }

  #error({ code, message, retryable, agentId }: ErrorFrame): void {
    if (code === "news_lagged") return this.#tell({ type: "reset" });
    const feed = agentId === undefined ? undefined : this.#feeds.get(agentId);
    if (agentId === undefined || !feed) return;
    if (retryable) {
      feed.cancelRetry();
      feed.cancelRetry = after(feed.backoff.next(), () => this.#subscribe(agentId, feed));
      return;
    }
    const error = new TokenrailError(code, message);
    this.#endFeed(agentId, feed, (follower) => follower.fail(error));
  }

  #deleted({ payload }: Extract<PlainFrame, { type: "agent:deleted" }>): void {
    const feed = this.#feeds.get(payload.agentId);
    if (feed) this.#endFeed(payload.agentId, feed, (follower) => follower.end());
    this.#tell({ type: "deleted", ...payload });
  }
}

/** A reader that also wants to know where the agent stands. */
class Standing extends Follower {
  readonly #whenSubscribed: (head: number, status: AgentStatus) => void;

  constructor(since: number, feed: Feed, page: EventsAfter, whenSubscribed: (head: number, status: AgentStatus) => void) {
    super(since, feed, page);
    this.#whenSubscribed = whenSubscribed;
  }

  stands(head: number, status: AgentStatus): void {
    this.#whenSubscribed(head, status);
  }
}
