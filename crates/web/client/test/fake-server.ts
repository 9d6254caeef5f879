// A server in memory, with the contract of the real one and with every fault that a network has.
import type { AgentEvent, ClientFrame, PlainFrame } from "../src/frames.js";
import type { Agent, AgentDeltas, AgentStatus, Problem } from "../src/generated/wire.js";
import type { WebSocketLike } from "../src/socket.js";
import { Journal, folded, packed } from "./journal.js";

interface Hosted {
  journal: Journal;
  status: AgentStatus;
  agent: Agent;
  /** What pages of `messages` have, and of how many events. */
  fold: { of: number; events: AgentEvent[] };
}

export class FakeServer {
  readonly agents = new Map<string, Hosted>();
  readonly sockets = new Set<FakeSocket>();
  /** Each request, as `GET /api/agents`. */
  readonly requests: string[] = [];
  /** Each frame of a client. */
  readonly heard: ClientFrame[] = [];
  /** Nobody answers. */
  isDown = false;
  /** Answers instead of the route. */
  refuse: ((request: string) => Response | undefined) | undefined;
  pageSize = 500;
  /** How many agents one connection may follow. */
  agentsPerSocket = 128;
  /** It gives the newest messages to who asks for them. */
  knowsLast = true;
  /** It packs the deltas of who asks for it. */
  knowsPacked = true;
  /** What a network makes of the frames that are sent together. */
  network: (frames: PlainFrame[]) => PlainFrame[] = (frames) => frames;
  #tickets = new Set<string>();
  #issued = 0;

  host(journal: Journal, status: AgentStatus = "running"): void {
    const at = new Date(1_795_299_000_000).toISOString();
    const { agentId } = journal;
    const agent: Agent = { id: agentId, agentId, type: "demo", status, openQuestions: 0, prompt: "hi", cwd: "/", turn: 1, queued: 0, head: 0, createdAt: at, updatedAt: at, pinned: false, archived: false, cancelOnDisconnect: false };
    this.agents.set(agentId, { journal, status, agent, fold: { of: 0, events: [] } });
  }

  options() {
    const server = this;
    class Socket extends FakeSocket {
      constructor(address: string) {
        super(server, address);
      }
    }
    return { baseUrl: "http://tokenrail.test", token: "secret", fetch: this.fetch, WebSocket: Socket, backoff: { firstMs: 1, maxMs: 2 } };
  }

  /** Sends the newest events of a journal to whoever follows it. */
  announce(journal: Journal, count = 1): void {
    const events = journal.events.slice(-count);
    for (const socket of this.sockets) if (socket.followed.has(journal.agentId)) socket.tell(socket.frames(events));
  }

  news(frame: PlainFrame): void {
    for (const socket of this.sockets) socket.tell([frame]);
  }

  /** Reliable, as TCP is: what is lost is lost by whole connections, or by a bug. */
  heartbeat(): void {
    for (const socket of this.sockets) {
      const heads = Object.fromEntries([...socket.followed].map((id) => [id, this.agents.get(id)?.journal.events.length ?? 0]));
      socket.deliver({ type: "heartbeat", payload: { heads }, timestamp: 0 });
    }
  }

  drop(code = 1006): void {
    for (const socket of [...this.sockets]) socket.lose(code);
  }

  fetch = async (input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> => {
    const url = new URL(String(input));
    const request = `${init.method ?? "GET"} ${url.pathname}`;
    this.requests.push(request);
    await Promise.resolve();
    if (init.signal?.aborted) throw init.signal.reason;
    if (this.isDown) throw new TypeError("fetch failed");
    const refused = this.refuse?.(request);
    if (refused) return refused;
    if ((init.headers as Record<string, string>)["Authorization"] !== "Bearer secret") return problem(401, "unauthenticated");
    return this.#answer(request, url);
  };

  takes(ticket: string | null): boolean {
    return !this.isDown && ticket !== null && this.#tickets.delete(ticket);
  }

  #answer(request: string, url: URL): Response {
    if (request === "POST /api/tickets") {
      const ticket = `ticket-${(this.#issued += 1)}`;
      this.#tickets.add(ticket);
      return Response.json({ ticket, expiresAt: "" }, { status: 201 });
    }
    if (request === "GET /healthz") return Response.json({});
    if (request === "GET /api/agents") {
      const asked = (name: string) => url.searchParams.get(name) === "true";
      const agents = [...this.agents.values()].map((hosted) => this.#agent(hosted)).reverse();
      return Response.json(agents.filter(({ pinned, archived }) => (!asked("pinned") || pinned) && archived === asked("archived")));
    }
    const [, id, form] = /^\w+ \/api\/agents\/([^/]+)(?:\/(\w+))?$/.exec(request) ?? [];
    const hosted = this.agents.get(id ?? "");
    if (!hosted) return problem(404, "not_found");
    if (form === undefined) return Response.json(this.#agent(hosted));
    const { events } = hosted.journal;
    if (hosted.fold.of !== events.length) hosted.fold = { of: events.length, events: folded(events) };
    if (form === "messages") return this.#page(hosted.fold.events, url.searchParams, events.length);
    return this.#page(events, url.searchParams, events.length);
  }

  #agent({ agent, journal, status }: Hosted): Agent {
    return { ...agent, status, head: journal.events.length };
  }

  #page(events: readonly AgentEvent[], query: URLSearchParams, head: number): Response {
    const last = this.knowsLast ? query.get("last") : null;
    const since = Math.max(Number(query.get("since")), last === null ? 0 : head - Number(last));
    const first = events.findIndex((event) => event.sequenceNumber > since);
    const size = Math.min(this.pageSize, Number(query.get("limit") ?? this.pageSize));
    const page = first < 0 ? [] : events.slice(first, first + size);
    const isLast = first < 0 || first + page.length === events.length;
    const upTo = isLast ? Math.max(since, head) : (page.at(-1)?.sequenceNumber ?? since);
    const headers = { "Tokenrail-Up-To": String(upTo), "Tokenrail-Head": String(head) };
    const items = this.knowsPacked && query.get("packed") === "true" ? packed(page) : page;
    return Response.json(items, { headers: last === null ? headers : { ...headers, "Tokenrail-Since": String(since) } });
  }
}

export class FakeSocket implements WebSocketLike {
  readyState = 0;
  onopen: ((event: never) => void) | null = null;
  onmessage: ((event: never) => void) | null = null;
  onclose: ((event: never) => void) | null = null;
  onerror: ((event: never) => void) | null = null;
  readonly followed = new Set<string>();
  readonly #server: FakeServer;
  readonly #packed: boolean;

  constructor(server: FakeServer, address: string) {
    this.#server = server;
    const query = new URL(address).searchParams;
    this.#packed = server.knowsPacked && query.get("packed") === "true";
    const ticket = query.get("ticket");
    queueMicrotask(() => {
      if (this.readyState !== 0) return;
      if (!server.takes(ticket)) return this.lose(1006);
      this.readyState = 1;
      server.sockets.add(this);
      this.onopen?.({} as never);
    });
  }

  send(text: string): void {
    const frame = JSON.parse(text) as ClientFrame;
    this.#server.heard.push(frame);
    if (frame.type === "ping") return this.tell([{ type: "pong", payload: {}, timestamp: 0 }]);
    const { agentId } = frame.payload;
    if (frame.type === "unsubscribe") return void this.followed.delete(agentId);
    const hosted = this.#server.agents.get(agentId);
    if (!hosted) return this.tell([{ type: "error", payload: { code: "not_found", message: "no such agent", retryable: false, agentId }, timestamp: 0 }]);
    if (!this.followed.has(agentId) && this.followed.size >= this.#server.agentsPerSocket) {
      const message = "this connection already follows limits.subscriptions_per_connection agents; unsubscribe from one, or open another connection";
      return this.tell([{ type: "error", payload: { code: "capacity_exhausted", message, retryable: true, agentId }, timestamp: 0 }]);
    }
    this.followed.add(agentId);
    const { events } = hosted.journal;
    const rest = this.frames(events.slice(frame.payload.since));
    this.tell([{ type: "subscribed", payload: { agentId, head: events.length, status: hosted.status }, timestamp: 0 }, ...rest]);
  }

  /** As this client has asked for them. */
  frames(events: readonly AgentEvent[]): PlainFrame[] {
    return (this.#packed ? packed(events) : events).map((item) => ("texts" in item ? deltasFrame(item) : messageFrame(item)));
  }

  close(code = 1000): void {
    this.lose(code);
  }

  /** Frames that go out together, through the network. */
  tell(frames: PlainFrame[]): void {
    queueMicrotask(() => {
      for (const frame of this.#server.network(frames)) this.deliver(frame);
    });
  }

  deliver(frame: PlainFrame): void {
    if (this.readyState === 1) this.onmessage?.({ data: JSON.stringify(frame) } as never);
  }

  lose(code: number): void {
    if (this.readyState === 3) return;
    this.readyState = 3;
    this.#server.sockets.delete(this);
    this.onclose?.({ code } as never);
  }
}

function messageFrame(message: AgentEvent): PlainFrame {
  const { agentId, sequenceNumber: sequence, createdAt: timestamp } = message;
  return { type: "agent:message", payload: { agentId, sequence, message, timestamp }, timestamp: Date.parse(timestamp) };
}

function deltasFrame(payload: AgentDeltas): PlainFrame {
  return { type: "agent:deltas", payload, timestamp: Date.parse(payload.createdAt) };
}

export function problem(status: number, code: Problem["code"], headers: Record<string, string> = {}): Response {
  const body: Problem = { type: `/problems/${code}`, title: code, status, detail: code, code, requestId: "r", retryable: status >= 500 || status === 429 };
  return Response.json(body, { status, headers: { "Content-Type": "application/problem+json", ...headers } });
}
