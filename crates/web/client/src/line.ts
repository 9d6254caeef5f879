// One connection, and the agents that are followed over it. It handles each frame, and subscribes again after a
// reconnect.
import { Backoff } from "./backoff.js";
import { unpacked } from "./deltas.js";
import { TokenrailError } from "./errors.js";
import type { Follower } from "./follower.js";
import type { AgentEvent, AgentNews, PlainFrame } from "./frames.js";
import type { AgentStatus, ErrorFrame } from "./generated/wire.js";
import { Socket, type SocketOptions } from "./socket.js";
import { after } from "./timers.js";

/** The number of agents that a server lets one connection follow. A server that allows fewer refuses the next one. */
const AGENTS = 128;

/** A follower that also wants to know the agent's head and status. */
export interface Standing extends Follower {
  stands(head: number, status: AgentStatus): void;
}

/** The subscription to one agent, for all of its readers. */
export class Feed {
  readonly agentId: string;
  readonly followers = new Set<Standing>();
  /** All events up to this number have arrived over the socket, without gaps. */
  last: number;
  /** A subscription was requested, but not confirmed yet. Until then, events belong to the previous subscription. */
  asked = false;
  readonly backoff = new Backoff();
  cancelRetry = () => {};
  release = () => {};

  constructor(agentId: string, since: number) {
    this.agentId = agentId;
    this.last = since;
  }
}

export interface LineOwner {
  tell(news: AgentNews): void;
  /** The connection will not be re-established, so there will be no more news. */
  fail(error: TokenrailError): void;
  /** The server lets this connection follow no more agents, so this agent needs another connection. */
  refused(feed: Feed): void;
}

export class Line {
  readonly socket: Socket;
  readonly #feeds = new Map<string, Feed>();
  readonly #owner: LineOwner;
  #room = AGENTS;

  constructor(options: SocketOptions, owner: LineOwner) {
    this.#owner = owner;
    this.socket = new Socket(options, {
      opened: () => this.#opened(),
      heard: (frame) => this.#heard(frame),
      failed: (error) => this.#failed(error),
    });
  }

  get hasRoom(): boolean {
    return this.#feeds.size < this.#room;
  }
  get isUsed(): boolean {
    return this.#feeds.size > 0;
  }

  feed(agentId: string): Feed | undefined {
    return this.#feeds.get(agentId);
  }

  add(feed: Feed): void {
    this.#feeds.set(feed.agentId, feed);
    feed.release = this.socket.hold();
    this.subscribe(feed);
  }

  subscribe(feed: Feed): void {
    feed.cancelRetry();
    feed.asked = true;
    this.socket.send({ type: "subscribe", payload: { agentId: feed.agentId, since: feed.last } });
  }

  /** No reader follows this agent any more. */
  drop(feed: Feed): void {
    this.#forget(feed);
    this.socket.send({ type: "unsubscribe", payload: { agentId: feed.agentId } });
  }

  /** Ends all followers of this connection. */
  end(): void {
    for (const feed of [...this.#feeds.values()]) this.#endFeed(feed, (follower) => follower.end());
    this.socket.close();
  }

  #failed(error: TokenrailError): void {
    for (const feed of [...this.#feeds.values()]) this.#endFeed(feed, (follower) => follower.fail(error));
    this.#owner.fail(error);
  }

  #forget(feed: Feed): void {
    feed.cancelRetry();
    this.#feeds.delete(feed.agentId);
    feed.release();
  }

  #endFeed(feed: Feed, end: (follower: Follower) => void): void {
    this.#forget(feed);
    for (const follower of [...feed.followers]) end(follower);
  }

  #opened(): void {
    for (const feed of this.#feeds.values()) {
      this.subscribe(feed);
      for (const follower of feed.followers) follower.askAgain();
    }
    this.#owner.tell({ type: "reset" });
  }

  #heard(frame: PlainFrame): void {
    switch (frame.type) {
      case "agent:message":
        return this.#events(frame.payload.agentId, [frame.payload.message]);
      case "agent:deltas":
        return this.#deltas(frame.payload);
      case "subscribed":
        return this.#subscribed(frame.payload);
      case "heartbeat":
        return this.#heads(frame.payload.heads);
      case "error":
        return this.#error(frame.payload);
      case "agent:created":
        return this.#owner.tell({ type: "created", ...frame.payload });
      case "agent:updated":
        return this.#owner.tell({ type: "updated", ...frame.payload });
      case "agent:deleted":
        return this.#deleted(frame);
    }
  }

  /** If all of its events are known, the frame is not unpacked. */
  #deltas(deltas: Extract<PlainFrame, { type: "agent:deltas" }>["payload"]): void {
    const feed = this.#feeds.get(deltas.agentId);
    if (feed && deltas.to > feed.last) this.#events(deltas.agentId, unpacked(deltas));
  }

  #events(agentId: string, events: readonly AgentEvent[]): void {
    const feed = this.#feeds.get(agentId);
    if (!feed) return;
    for (const event of events) {
      if (event.sequenceNumber <= feed.last) continue;
      if (event.sequenceNumber > feed.last + 1) {
        if (!feed.asked) this.subscribe(feed);
        return;
      }
      feed.last = event.sequenceNumber;
      for (const follower of feed.followers) follower.offer(event);
    }
  }

  #subscribed({ agentId, head, status }: Extract<PlainFrame, { type: "subscribed" }>["payload"]): void {
    const feed = this.#feeds.get(agentId);
    if (!feed) return;
    feed.asked = false;
    feed.backoff.reset();
    for (const follower of feed.followers) follower.stands(head, status);
  }

  /** The server sent all earlier events before this frame. So an event that has not arrived was lost. */
  #heads(heads: Readonly<Record<string, number>>): void {
    for (const [agentId, feed] of this.#feeds) {
      const head = heads[agentId];
      if (head === undefined || head > feed.last) this.subscribe(feed);
    }
  }

  #error({ code, message, retryable, agentId }: ErrorFrame): void {
    if (code === "news_lagged") return this.#owner.tell({ type: "reset" });
    const feed = agentId === undefined ? undefined : this.#feeds.get(agentId);
    if (!feed) return;
    const others = this.#feeds.size - 1;
    if (code === "capacity_exhausted" && others > 0) {
      this.#room = others;
      this.#forget(feed);
      return this.#owner.refused(feed);
    }
    if (retryable) {
      feed.cancelRetry();
      feed.cancelRetry = after(feed.backoff.next(), () => this.subscribe(feed));
      return;
    }
    const error = new TokenrailError(code, message);
    this.#endFeed(feed, (follower) => follower.fail(error));
  }

  #deleted({ payload }: Extract<PlainFrame, { type: "agent:deleted" }>): void {
    const feed = this.#feeds.get(payload.agentId);
    if (feed) this.#endFeed(feed, (follower) => follower.end());
    this.#owner.tell({ type: "deleted", ...payload });
  }
}
