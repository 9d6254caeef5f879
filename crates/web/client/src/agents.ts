// The current list of agents. It is loaded once, and then kept up to date by news.
import { Backoff } from "./backoff.js";
import type { Client } from "./client.js";
import { type TokenrailError, asError } from "./errors.js";
import type { AgentNews } from "./frames.js";
import type { Agent, AgentUpdated } from "./generated/wire.js";
import { after } from "./timers.js";

export interface AgentsSnapshot {
  /** Newest first. */
  readonly agents: readonly Agent[];
  readonly loading: boolean;
  readonly error: TokenrailError | undefined;
}

/** How many agents are requested at first. `loadMore` requests more. */
const PAGE = 100;
/**
 * Up to this many changed agents are read one by one, after this delay. If more have changed, the list is read again.
 */
const READS = 8;
const READ_MS = 100;
const EMPTY: AgentsSnapshot = { agents: [], loading: true, error: undefined };

export class AgentList {
  readonly #client: Client;
  readonly #listeners = new Set<() => void>();
  #snapshot = EMPTY;
  #run: AbortController | undefined;
  /** How many agents are shown. A reload requests the same number. */
  #shown = PAGE;
  /** The number of the newest load. It replaces older loads. */
  #load = 0;
  /** News that arrived while a list was being loaded. The list may be older than the news. */
  #meanwhile: AgentNews[] | undefined;
  /** Changed agents that must be read again. */
  readonly #changed = new Set<string>();
  #cancelRead: (() => void) | undefined;
  readonly #backoff = new Backoff();
  #cancelRetry = () => {};
  /** Why no more news will arrive. */
  #unheard: TokenrailError | undefined;

  constructor(client: Client) {
    this.#client = client;
  }

  snapshot = (): AgentsSnapshot => this.#snapshot;

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  start(): void {
    if (this.#run) return;
    this.#run = new AbortController();
    void this.#watch(this.#run.signal);
    void this.#reload(this.#run.signal);
  }

  stop(): void {
    this.#run?.abort();
    this.#run = undefined;
    this.#cancelRead?.();
    this.#cancelRead = undefined;
    this.#cancelRetry();
  }

  refetch = (): void => {
    if (!this.#run) return;
    if (this.#unheard) void this.#watch(this.#run.signal);
    void this.#reload(this.#run.signal);
  };

  /** Loads older agents. */
  loadMore = (): void => {
    this.#shown += PAGE;
    this.refetch();
  };

  async #watch(signal: AbortSignal): Promise<void> {
    this.#unheard = undefined;
    try {
      await this.#hear(signal);
    } catch (thrown) {
      if (signal.aborted) return;
      this.#unheard = asError(thrown);
      this.#set({ ...this.#snapshot, error: this.#unheard });
    }
  }

  async #hear(signal: AbortSignal): Promise<void> {
    for await (const news of this.#client.watch({ signal })) {
      if (news.type === "reset") {
        void this.#reload(signal);
        continue;
      }
      this.#meanwhile?.push(news);
      this.#become(told(this.#snapshot.agents, news), this.#snapshot.loading);
      if (news.type !== "updated") continue;
      this.#changed.add(news.agentId);
      this.#cancelRead ??= after(READ_MS, () => void this.#readChanged(signal));
    }
  }

  /** The news of a change contains only the status and what the agent needs, so the agent is read again. */
  async #readChanged(signal: AbortSignal): Promise<void> {
    this.#cancelRead = undefined;
    const ids = [...this.#changed].filter((id) => this.#snapshot.agents.some((agent) => agent.id === id));
    this.#changed.clear();
    if (signal.aborted) return;
    if (ids.length > READS) return this.#reload(signal);
    // If an agent cannot be read, its status is known, and the next news updates it.
    const read = await Promise.allSettled(ids.map((id) => this.#client.agent(id, { signal })));
    if (signal.aborted) return;
    const agents = new Map(read.flatMap((each) => (each.status === "fulfilled" ? [[each.value.id, each.value]] : [])));
    this.#become(this.#snapshot.agents.map((agent) => agents.get(agent.id) ?? agent), this.#snapshot.loading);
  }

  async #reload(signal: AbortSignal): Promise<void> {
    this.#cancelRetry();
    this.#load += 1;
    const load = this.#load;
    this.#meanwhile = [];
    try {
      let agents: readonly Agent[] = await this.#read(signal);
      if (signal.aborted || load !== this.#load) return;
      for (const news of this.#meanwhile) agents = told(agents, news);
      this.#meanwhile = undefined;
      this.#backoff.reset();
      this.#become(agents, false);
    } catch (thrown) {
      if (signal.aborted || load !== this.#load) return;
      this.#meanwhile = undefined;
      const error = asError(thrown);
      this.#set({ ...this.#snapshot, loading: false, error });
      if (error.retryable) this.#cancelRetry = after(this.#backoff.next(error.retryAfterMs), this.refetch);
    }
  }

  async #read(signal: AbortSignal): Promise<Agent[]> {
    const agents: Agent[] = [];
    for await (const agent of this.#client.eachAgent({ limit: PAGE, signal })) {
      if (agents.length === this.#shown) break;
      agents.push(agent);
    }
    return agents;
  }

  #become(agents: readonly Agent[], loading: boolean): void {
    const known = new Map(this.#snapshot.agents.map((agent) => [agent.id, agent]));
    // Unchanged agents remain the same objects.
    const shared = agents.map((agent) => sameAs(known.get(agent.id), agent));
    this.#set({ agents: shared, loading, error: this.#unheard });
  }

  #set(snapshot: AgentsSnapshot): void {
    this.#snapshot = snapshot;
    for (const listener of [...this.#listeners]) listener();
  }
}

/** The list after a piece of news. */
function told(agents: readonly Agent[], news: AgentNews): readonly Agent[] {
  switch (news.type) {
    case "created": {
      const others = agents.filter((agent) => agent.id !== news.agent.id);
      // Ids are ordered by time: the newest agent has the greatest id.
      const at = others.findIndex((agent) => agent.id < news.agent.id);
      others.splice(at < 0 ? others.length : at, 0, news.agent);
      return others;
    }
    case "updated":
      return agents.map((agent) => (agent.id === news.agentId ? changed(agent, news) : agent));
    case "deleted":
      return agents.filter((agent) => agent.id !== news.agentId);
    case "reset":
      return agents;
  }
}

function changed({ waitingSince: _, ...agent }: Agent, { status, openQuestions, waitingSince }: AgentUpdated): Agent {
  return { ...agent, status, openQuestions, ...(waitingSince !== undefined && { waitingSince }) };
}

function sameAs(known: Agent | undefined, agent: Agent): Agent {
  return known && JSON.stringify(known) === JSON.stringify(agent) ? known : agent;
}
