// What a client can do, and its options. `client.ts` does it.
import type { BackoffOptions } from "./backoff.js";
import type { ChangesQuery, Patch, PatchQuery } from "./changes.js";
import type { Connection } from "./connection.js";
import type { AgentEvent, AgentNews } from "./frames.js";
import type {
  Accepted,
  Agent,
  AgentEdit,
  AgentMessage,
  AgentRef,
  AgentState,
  AgentStatus,
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
import type { Token } from "./rest.js";

export interface ClientOptions {
  /** The URL of the server. Default: the origin of the page, or `http://127.0.0.1:7117` outside of a page. */
  baseUrl?: string;
  /** The server's token, or a function that returns it for each request. */
  token?: Token;
  fetch?: typeof globalThis.fetch;
  /**
   * A WebSocket implementation, for example from the package `ws`. Default: the one of the runtime. If there is none, as
   * in Node 20, the client reads one event stream for each agent that it follows.
   */
  WebSocket?: unknown;
  /** How long to wait between attempts to connect. */
  backoff?: BackoffOptions;
  /**
   * The server collects frames for this many milliseconds (1 to 1000) before it sends them: fewer messages, slightly
   * later.
   */
  batchMs?: number;
}

export interface Abortable {
  signal?: AbortSignal | undefined;
}
export interface Keyed extends Abortable {
  /**
   * A call with the same key and body takes effect only once within 24 hours. Default: a new random key for each call.
   */
  idempotencyKey?: string | undefined;
}
export interface CancelOptions extends Abortable {
  /** Cancel only this turn. The other turns are not affected. Default: the running turn and the queued ones. */
  turn?: number | undefined;
}
export interface AgentsQuery extends Abortable {
  status?: AgentStatus | readonly AgentStatus[] | undefined;
  type?: string | undefined;
  limit?: number | undefined;
  /** The id of an agent: return only agents that were launched before it. */
  before?: string | undefined;
  /** Return only pinned agents. */
  pinned?: boolean | undefined;
  /** Return only archived agents, which are otherwise left out. */
  archived?: boolean | undefined;
  /** Return only deleted agents, which are otherwise left out. */
  deleted?: boolean | undefined;
}
export interface EventsQuery extends Abortable {
  /** Return events after this sequence number. Default: 0. */
  since?: number | undefined;
  limit?: number | undefined;
  /** Include the raw lines that the agent printed. */
  raw?: boolean | undefined;
}
export interface FollowOptions extends Abortable {
  since?: number | undefined;
  /** End when the agent has ended and all of its events were returned. By default, wait for later turns. */
  untilEnded?: boolean | undefined;
}

export interface MessagesQuery extends EventsQuery {
  /**
   * Return only the newest `last` events after `since`. `Page.since` then says where the page begins, and may be greater
   * than the `since` of the request.
   */
  last?: number | undefined;
}

/**
 * A page of a journal: the events after `since`, complete up to `upTo`. If `upTo` is less than `head`, there are more
 * pages.
 */
export interface Page {
  messages: AgentMessage[];
  since: number;
  upTo: number;
  head: number;
}

export interface Client {
  /** One page of agents, newest first. */
  agents(query?: AgentsQuery): Promise<Agent[]>;
  /** All agents, newest first, read page by page. */
  eachAgent(query?: AgentsQuery): AsyncIterable<Agent>;
  /** The agents that are starting or running, newest first, read page by page. */
  activeAgents(options?: Abortable): Promise<Agent[]>;
  launch(body: Launch, options?: Keyed): Promise<Agent>;
  agent(id: string, options?: Abortable): Promise<Agent>;
  status(id: string, options?: Abortable): Promise<AgentState>;
  cancel(id: string, options?: CancelOptions): Promise<AgentRef>;
  /** The open permission requests of all agents, oldest first, read page by page. */
  questions(options?: Abortable): Promise<OpenQuestion[]>;
  /** Answers a permission request: with one of its options, with what else it accepts, or with none. The first answer counts. */
  answer(id: string, requestId: string, answer: PermissionAnswer, options?: Abortable): Promise<PermissionState>;
  /**
   * Changes the agent's name (`null` removes it), or its place in the lists: `pinned`, `archived`. A field that is absent
   * stays as it is.
   */
  edit(id: string, body: AgentEdit, options?: Abortable): Promise<Agent>;
  /** Stops the agent and removes it from the lists; with `purge`, also deletes its history. */
  remove(id: string, options?: Abortable & { purge?: boolean }): Promise<void>;
  /** Sends a message to the agent. It becomes the agent's next turn, after the turns that are already queued. */
  send(id: string, content: string | NewMessage, options?: Keyed): Promise<Accepted>;
  /** Withdraws a queued turn, so that its prompt never reaches the agent. Fails if the turn has begun. */
  withdraw(id: string, turn: number, options?: Abortable): Promise<void>;
  turns(id: string, options?: Abortable): Promise<Turn[]>;
  /** An image of the prompt of a turn, by its position from 0. */
  promptImage(id: string, turn: number, position: number, options?: Abortable): Promise<Blob>;
  turn(id: string, number: number, options?: Abortable): Promise<TurnRecord>;
  /**
   * All events after `since`, without the deltas of messages that are complete by now; with `limit`, at most that many.
   */
  messages(id: string, query?: MessagesQuery): Promise<AgentMessage[]>;
  /** One page of the same events. */
  messagesPage(id: string, query?: MessagesQuery): Promise<Page>;
  /** A page of all events, including deltas, without gaps. */
  events(id: string, query?: EventsQuery): Promise<Page>;
  /** The files in the git repository of the agent's folder that have changed, or why git cannot tell. */
  changes(id: string, query?: ChangesQuery): Promise<Changes>;
  /** The same changes as a unified diff. Fails with `changes_unavailable` if git cannot tell. */
  patch(id: string, query?: PatchQuery): Promise<Patch>;
  exportAgent(id: string, options?: Abortable): Promise<Blob>;
  importAgent(file: Blob | string, options?: Abortable): Promise<Agent>;
  replay(id: string, body?: ReplayRequest, options?: Abortable): Promise<Agent>;
  agentTypes(options?: Abortable): Promise<AgentType[]>;
  /** The servers that use the database, by id. A database that is not shared has one. */
  nodes(options?: Abortable): Promise<ServerNode[]>;
  /** Removes a node that will not come back. Fails with `node_alive` if its server has not stopped. */
  forgetNode(id: number, options?: Abortable): Promise<void>;
  /** The process of the server, if the client is on the same machine. */
  server(options?: Abortable): Promise<ServerProcess>;
  /**
   * Every event after `since`, once and in order, even if connections are lost. Ends without an error when `signal` is
   * aborted, the agent is deleted, or, with `untilEnded`, the agent has ended.
   */
  follow(id: string, options?: FollowOptions): AsyncIterableIterator<AgentEvent, undefined>;
  /**
   * The lifecycle events of all agents, even if connections are lost. Ends without an error when `signal` is aborted.
   */
  watch(options?: Abortable): AsyncIterableIterator<AgentNews, undefined>;
  readonly connection: Connection;
  /** Ends every `follow` and `watch`. REST calls still work. */
  close(): void;
}
