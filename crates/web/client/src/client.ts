// The client: REST calls with the server's own types, and the events of agents over a shared connection.
import type {
  Abortable,
  AgentsQuery,
  CancelOptions,
  Client,
  ClientOptions,
  EventsQuery,
  FollowOptions,
  Keyed,
  MessagesQuery,
  Page,
} from "./api.js";
import { type ChangesQuery, type Patch, type PatchQuery, patchOf } from "./changes.js";
import { type Connection, SharedConnection } from "./connection.js";
import { unpackedPage } from "./deltas.js";
import { Following } from "./following.js";
import type { AgentEvent, AgentNews } from "./frames.js";
import type {
  Accepted,
  Agent,
  AgentDeltas,
  AgentEdit,
  AgentMessage,
  AgentRef,
  AgentState,
  AgentType,
  Changes,
  Launch,
  OpenQuestion,
  PermissionAnswer,
  PermissionState,
  NewMessage,
  ReplayRequest,
  ServerNode,
  ServerProcess,
  Turn,
  TurnRecord,
} from "./generated/wire.js";
import { Hub } from "./hub.js";
import { Queue } from "./queue.js";
import { type Request, Rest, blob, body, freshKey, nextPage } from "./rest.js";
import type { WebSocketConstructor } from "./socket.js";
import { eventStreams } from "./streams.js";

export function createClient(options: ClientOptions = {}): Client {
  return new TokenrailClient(options);
}

export class TokenrailClient implements Client {
  readonly connection: Connection;
  readonly #rest: Rest;
  readonly #hub: Hub;
  readonly #watches = new Set<Queue<AgentNews>>();

  constructor({ baseUrl, token, fetch, WebSocket, backoff, batchMs }: ClientOptions = {}) {
    // Browsers require that `fetch` is not called as a method of another object.
    const send = fetch ?? ((...request: Parameters<typeof globalThis.fetch>) => globalThis.fetch(...request));
    this.#rest = new Rest({ baseUrl: baseUrl ?? defaultBase(), token, fetch: send });
    const socket = (WebSocket ?? globalThis.WebSocket ?? eventStreams(this.#rest)) as WebSocketConstructor;
    this.#hub = new Hub({ rest: this.#rest, WebSocket: socket, backoff, batchMs }, (id) => async (since, signal) => {
      const page = await this.events(id, { since, signal });
      return page.messages;
    });
    this.connection = new SharedConnection(this.#hub);
  }

  agents(query: AgentsQuery = {}): Promise<Agent[]> {
    return this.#rest.json("/api/agents", agentsRequest(query));
  }

  async *eachAgent(query: AgentsQuery = {}): AsyncGenerator<Agent, void> {
    yield* this.#listed<Agent>("/api/agents", agentsRequest(query));
  }

  activeAgents({ signal }: Abortable = {}): Promise<Agent[]> {
    return this.#all("/api/agents/active", signal);
  }

  questions({ signal }: Abortable = {}): Promise<OpenQuestion[]> {
    return this.#all("/api/questions", signal);
  }

  launch(body: Launch, { idempotencyKey = freshKey(), signal }: Keyed = {}): Promise<Agent> {
    return this.#rest.json("/api/agents", { method: "POST", body, idempotencyKey, signal });
  }

  agent(id: string, { signal }: Abortable = {}): Promise<Agent> {
    return this.#rest.json(pathOf(id), { signal });
  }

  status(id: string, { signal }: Abortable = {}): Promise<AgentState> {
    return this.#rest.json(`${pathOf(id)}/status`, { signal });
  }

  cancel(id: string, { turn, signal }: CancelOptions = {}): Promise<AgentRef> {
    return this.#rest.json(`${pathOf(id)}/cancel`, { method: "POST", query: { turn }, signal });
  }

  answer(id: string, requestId: string, body: PermissionAnswer, { signal }: Abortable = {}): Promise<PermissionState> {
    const path = `${pathOf(id)}/permissions/${encodeURIComponent(requestId)}`;
    return this.#rest.json(path, { method: "POST", body, signal });
  }

  edit(id: string, body: AgentEdit, { signal }: Abortable = {}): Promise<Agent> {
    return this.#rest.json(pathOf(id), { method: "PATCH", body, signal });
  }

  async remove(id: string, { purge, signal }: Abortable & { purge?: boolean } = {}): Promise<void> {
    await this.#rest.send(pathOf(id), { method: "DELETE", query: { purge }, signal });
  }

  send(id: string, content: string | NewMessage, { idempotencyKey = freshKey(), signal }: Keyed = {}): Promise<Accepted> {
    const body = typeof content === "string" ? { content } : content;
    return this.#rest.json(`${pathOf(id)}/messages`, { method: "POST", body, idempotencyKey, signal });
  }

  async withdraw(id: string, turn: number, { signal }: Abortable = {}): Promise<void> {
    await this.#rest.send(`${pathOf(id)}/turns/${turn}`, { method: "DELETE", signal });
  }

  async turns(id: string, { signal }: Abortable = {}): Promise<Turn[]> {
    const turns: Turn[] = [];
    for await (const turn of this.#listed<Turn>(`${pathOf(id)}/turns`, { signal })) turns.push(turn);
    return turns;
  }

  turn(id: string, number: number, { signal }: Abortable = {}): Promise<TurnRecord> {
    return this.#rest.json(`${pathOf(id)}/turns/${number}`, { signal });
  }

  async promptImage(id: string, turn: number, position: number, { signal }: Abortable = {}): Promise<Blob> {
    return blob(await this.#rest.send(`${pathOf(id)}/turns/${turn}/images/${position}`, { signal }), signal);
  }

  async messages(id: string, { last, since = 0, ...query }: MessagesQuery = {}): Promise<AgentMessage[]> {
    const limit = query.limit ?? Number.POSITIVE_INFINITY;
    let page = await this.messagesPage(id, { ...query, since, last });
    const { messages } = page;
    while (page.upTo < page.head && page.upTo > page.since && messages.length < limit) {
      const left = Number.isFinite(limit) ? limit - messages.length : undefined;
      page = await this.messagesPage(id, { ...query, since: page.upTo, limit: left });
      for (const message of page.messages) messages.push(message);
    }
    return messages;
  }

  messagesPage(id: string, query: MessagesQuery = {}): Promise<Page> {
    return this.#page(`${pathOf(id)}/messages`, query);
  }

  events(id: string, query: EventsQuery = {}): Promise<Page> {
    return this.#page(`${pathOf(id)}/events`, query);
  }

  changes(id: string, { turn, signal }: ChangesQuery = {}): Promise<Changes> {
    return this.#rest.json(`${pathOf(id)}/changes`, { query: { turn }, signal });
  }

  async patch(id: string, { turn, file, signal }: PatchQuery = {}): Promise<Patch> {
    const query = { turn, path: file?.path, oldPath: file?.oldPath };
    return patchOf(await this.#rest.send(`${pathOf(id)}/changes/patch`, { query, signal }), signal);
  }

  async exportAgent(id: string, { signal }: Abortable = {}): Promise<Blob> {
    const response = await this.#rest.send(`${pathOf(id)}/export`, { signal });
    return blob(response, signal);
  }

  importAgent(file: Blob | string, { signal }: Abortable = {}): Promise<Agent> {
    return this.#rest.json("/api/agents/import", { method: "POST", file, signal });
  }

  replay(id: string, body: ReplayRequest = {}, { signal }: Abortable = {}): Promise<Agent> {
    return this.#rest.json(`${pathOf(id)}/replay`, { method: "POST", body, signal });
  }

  agentTypes({ signal }: Abortable = {}): Promise<AgentType[]> {
    return this.#rest.json("/api/agent-types", { signal });
  }

  nodes({ signal }: Abortable = {}): Promise<ServerNode[]> {
    return this.#rest.json("/api/nodes", { signal });
  }

  async forgetNode(id: number, { signal }: Abortable = {}): Promise<void> {
    await this.#rest.send(`/api/nodes/${id}`, { method: "DELETE", signal });
  }

  server({ signal }: Abortable = {}): Promise<ServerProcess> {
    return this.#rest.json("/api/server", { signal });
  }

  follow(id: string, options: FollowOptions = {}): AsyncIterableIterator<AgentEvent, undefined> {
    return new Following(this.#hub, (signal) => this.agent(id, { signal }), id, options);
  }

  watch({ signal }: Abortable = {}): AsyncIterableIterator<AgentNews, undefined> {
    const queue = new Queue<AgentNews>((tell, fail) => this.#hub.watch({ tell, fail }), signal);
    this.#watches.add(queue);
    void queue.ended.then(() => this.#watches.delete(queue));
    return queue;
  }

  close(): void {
    for (const watch of this.#watches) watch.end();
    this.#hub.end();
  }

  async #page(path: string, { since = 0, limit, raw, last, signal }: MessagesQuery): Promise<Page> {
    // A server that does not support packed deltas sends each delta separately.
    const response = await this.#rest.send(path, { query: { since, limit, raw, last, packed: raw ? undefined : true }, signal });
    const messages = unpackedPage(await body<(AgentMessage | AgentDeltas)[]>(response, signal));
    const said = (name: string, otherwise: number) => Number(response.headers.get(name) ?? otherwise);
    const upTo = said("Tokenrail-Up-To", since);
    return { messages, since: said("Tokenrail-Since", since), upTo, head: said("Tokenrail-Head", upTo) };
  }

  async #all<T>(path: string, signal: AbortSignal | undefined): Promise<T[]> {
    const all: T[] = [];
    for await (const each of this.#listed<T>(path, { signal })) all.push(each);
    return all;
  }

  async *#listed<T>(path: string, request: Request): AsyncGenerator<T, void> {
    let next: string | undefined = path;
    let query = request.query;
    while (next !== undefined) {
      const response: Response = await this.#rest.send(next, { ...request, query });
      yield* await body<T[]>(response, request.signal);
      next = nextPage(response);
      query = undefined;
    }
  }
}

function pathOf(id: string): string {
  return `/api/agents/${encodeURIComponent(id)}`;
}

function agentsRequest({ status, signal, ...query }: AgentsQuery): Request {
  const states = typeof status === "string" ? status : status?.join(",");
  const { type, limit, before, pinned, archived, deleted } = query;
  return { query: { status: states, type, limit, before, pinned, archived, deleted }, signal };
}

function defaultBase(): string {
  const origin = globalThis.location?.origin;
  return origin && origin !== "null" ? origin : "http://127.0.0.1:7117";
}
