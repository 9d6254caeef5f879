// Serves many readers over as few connections as possible: usually one.
import type { TokenrailError } from "./errors.js";
import { type EventsAfter, Follower } from "./follower.js";
import type { AgentNews } from "./frames.js";
import type { AgentStatus } from "./generated/wire.js";
import { Feed, Line } from "./line.js";
import type { ConnectionSnapshot, SocketOptions } from "./socket.js";

const ENDED: ReadonlySet<AgentStatus> = new Set<AgentStatus>(["completed", "failed", "cancelled", "interrupted"]);

export function hasEnded(status: AgentStatus): boolean {
  return ENDED.has(status);
}

type WhenSubscribed = (head: number, status: AgentStatus) => void;

/** Receives the lifecycle events of all agents ("news"). */
export interface Watcher {
  tell(news: AgentNews): void;
  /** No more news will arrive. */
  fail(error: TokenrailError): void;
}

/** A reader's place at the hub. */
export interface Seat {
  follower: Follower;
  leave(): void;
}

export class Hub {
  readonly #options: SocketOptions;
  readonly #pages: (agentId: string) => EventsAfter;
  readonly #watchers = new Set<Watcher>();
  readonly #listeners = new Set<() => void>();
  /** The first connection also delivers the news. Each further connection was added because all others were full. */
  readonly #first: Line;
  readonly #others = new Set<Line>();

  constructor(options: SocketOptions, pages: (agentId: string) => EventsAfter) {
    this.#options = options;
    this.#pages = pages;
    this.#first = this.#line({
      tell: (news) => {
        for (const watcher of [...this.#watchers]) watcher.tell(news);
      },
      fail: (error) => {
        for (const watcher of [...this.#watchers]) watcher.fail(error);
      },
    });
  }

  /**
   * The state of all connections together: the state of the first needed connection that is not open, if there is one.
   */
  snapshot(): ConnectionSnapshot {
    const others = [...this.#others].filter(({ isUsed }) => isUsed).map(({ socket }) => socket.snapshot());
    const first = this.#first.socket.snapshot();
    const isNeeded = first.state !== "closed" || first.error !== undefined || others.length === 0;
    const all = isNeeded ? [first, ...others] : others;
    return all.find(({ state }) => state !== "open") ?? all[0] ?? first;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  wake(): void {
    for (const { socket } of this.#lines()) socket.wake();
  }

  follow(agentId: string, since: number, whenSubscribed: WhenSubscribed): Seat {
    const line = this.#lines().find((each) => each.feed(agentId));
    const feed = line?.feed(agentId) ?? new Feed(agentId, since);
    const follower = new Standing(since, feed, this.#pages(agentId), whenSubscribed);
    feed.followers.add(follower);
    if (line) {
      follower.catchUp();
      // The reader may wait for the news that the agent has ended, which arrives with the response to a subscription.
      line.subscribe(feed);
    } else this.#place(feed);
    const leave = () => {
      follower.leave();
      this.#leave(feed, follower);
    };
    return { follower, leave };
  }

  watch(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    const release = this.#first.socket.hold();
    if (this.#first.socket.snapshot().state === "open") watcher.tell({ type: "reset" });
    return () => {
      this.#watchers.delete(watcher);
      release();
    };
  }

  /** Ends all followers and watchers. */
  end(): void {
    for (const line of this.#lines()) line.end();
  }

  #lines(): Line[] {
    return [this.#first, ...this.#others];
  }

  #line({ tell, fail }: Watcher): Line {
    const line: Line = new Line(this.#options, { tell, fail, refused: (feed) => this.#place(feed) });
    line.socket.subscribe(() => {
      if (line.socket.snapshot().state === "closed" && !line.isUsed) this.#others.delete(line);
      for (const listener of [...this.#listeners]) listener();
    });
    return line;
  }

  #place(feed: Feed): void {
    let line = this.#lines().find(({ hasRoom }) => hasRoom);
    if (!line) {
      line = this.#line({ tell: () => {}, fail: () => {} });
      this.#others.add(line);
    }
    line.add(feed);
  }

  #leave(feed: Feed, follower: Standing): void {
    feed.followers.delete(follower);
    if (feed.followers.size > 0) return;
    const line = this.#lines().find((each) => each.feed(feed.agentId) === feed);
    line?.drop(feed);
  }
}

/** A follower that also wants to know the agent's head and status. */
class Standing extends Follower {
  readonly stands: WhenSubscribed;

  constructor(since: number, feed: Feed, page: EventsAfter, whenSubscribed: WhenSubscribed) {
    super(since, feed, page);
    this.stands = whenSubscribed;
  }
}
