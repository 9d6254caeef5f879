// The current list of agents. It is loaded once, and then kept up to date by news.
import { Backoff } from "./backoff.js";
import type { AgentsQuery, Client } from "./api.js";
import { type TokenrailError, asError } from "./errors.js";
import type { AgentNews } from "./frames.js";
import type { Agent, AgentUpdated } from "./generated/wire.js";
import { after } from "./timers.js";

export interface AgentListOptions {
  /** List only archived agents, which are otherwise left out. */
  archived?: boolean | undefined;
}

export interface AgentsSnapshot {
  /** Newest first. All pinned agents are among them, also those that are older than the rest of the list. */
  readonly agents: readonly Agent[];
  readonly loading: boolean;
  readonly error: TokenrailError | undefined;
}

/** At most this many pinned agents are listed that are older than the rest of the list. */
const PINS = 500;
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
  readonly #archived: boolean;
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
  /** Edited agents that must be read, because they may belong to the list now, or no longer. */
  readonly #edited = new Set<string>();
  #cancelRead: (() => void) | undefined;
  readonly #backoff = new Backoff();
  #cancelRetry = () => {};
  /** Why no more news will arrive. */
  #unheard: TokenrailError | undefined;

  constructor(client: Client, { archived = false }: AgentListOptions = {}) {
    this.#client = client;
    this.#archived = archived;
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
      this.#become(this.#told(this.#snapshot.agents, news), this.#snapshot.loading);
      if (news.type !== "updated") continue;
      (news.edited ? this.#edited : this.#changed).add(news.agentId);
      this.#readSoon(signal);
    }
  }

  #readSoon(signal: AbortSignal): void {
    this.#cancelRead ??= after(READ_MS, () => void this.#readChanged(signal));
  }

  /** The news of a change contains only the status and what the agent needs, so the agent is read again. */
  async #readChanged(signal: AbortSignal): Promise<void> {
    this.#cancelRead = undefined;
    // A list that is being loaded may be older than the change. The agents are read after it.
    if (signal.aborted || this.#meanwhile) return;
    const listed = new Set(this.#snapshot.agents.map(({ id }) => id));
    const ids = [...new Set([...this.#edited, ...[...this.#changed].filter((id) => listed.has(id))])];
    this.#changed.clear();
    this.#edited.clear();
    if (ids.length > READS) return this.#reload(signal);
    // If an agent cannot be read, its status is known, and the next news updates it.
    const read = await Promise.allSettled(ids.map((id) => this.#client.agent(id, { signal })));
    if (signal.aborted) return;
    const agents = new Map(read.flatMap((each) => (each.status === "fulfilled" ? [[each.value.id, each.value]] : [])));
    this.#become(this.#placed(agents), this.#snapshot.loading);
  }

  /** The list with agents that were read again. Some of them come into the list with that, or leave it. */
  #placed(read: ReadonlyMap<string, Agent>): readonly Agent[] {
    const { agents } = this.#snapshot;
    const listed = new Set(agents.map(({ id }) => id));
    // Without older agents in between, an agent from further down would leave a gap.
    const oldest = agents.length < this.#shown ? "" : (agents.findLast(({ pinned }) => !pinned)?.id ?? "");
    const come = [...read.values()].filter(({ id, pinned }) => !listed.has(id) && (pinned || id > oldest));
    const all = [...agents.map((agent) => read.get(agent.id) ?? agent), ...come.filter(notDeleted)];
    return newestFirst(all.filter(this.#belongs));
  }

  #belongs = (agent: Agent): boolean => (agent.archived ?? false) === this.#archived;

  async #reload(signal: AbortSignal): Promise<void> {
    this.#cancelRetry();
    this.#load += 1;
    const load = this.#load;
    this.#meanwhile = [];
    try {
      let agents: readonly Agent[] = await this.#read(signal);
      if (signal.aborted || load !== this.#load) return;
      for (const news of this.#meanwhile) agents = this.#told(agents, news);
      this.#meanwhile = undefined;
      this.#backoff.reset();
      this.#become(agents, false);
      if (this.#changed.size + this.#edited.size > 0) this.#readSoon(signal);
    } catch (thrown) {
      if (signal.aborted || load !== this.#load) return;
      this.#meanwhile = undefined;
      const error = asError(thrown);
      this.#set({ ...this.#snapshot, loading: false, error });
      if (error.retryable) this.#cancelRetry = after(this.#backoff.next(error.retryAfterMs), this.refetch);
    }
  }

  async #read(signal: AbortSignal): Promise<Agent[]> {
    const [newest, pinned] = await Promise.all([
      this.#readSome({ archived: this.#archived || undefined, signal }, this.#shown),
      this.#archived ? [] : this.#readSome({ pinned: true, signal }, PINS),
    ]);
    const listed = new Set(newest.map(({ id }) => id));
    // An older server returns agents that are not pinned, or not archived.
    const older = pinned.filter(({ id, pinned }) => pinned && !listed.has(id));
    return newestFirst([...newest, ...older].filter(this.#belongs));
  }

  async #readSome(query: AgentsQuery, count: number): Promise<Agent[]> {
    const agents: Agent[] = [];
    for await (const agent of this.#client.eachAgent({ limit: PAGE, ...query })) {
      if (agents.length === count) break;
      agents.push(agent);
    }
    return agents;
  }

  /** The list after a piece of news. A new agent is not archived. */
  #told(agents: readonly Agent[], news: AgentNews): readonly Agent[] {
    return news.type === "created" && this.#archived ? agents : told(agents, news);
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

function newestFirst(agents: Agent[]): Agent[] {
  // Ids are ordered by time.
  return agents.sort((one, other) => (one.id < other.id ? 1 : -1));
}

function notDeleted({ deletedAt }: Agent): boolean {
  return deletedAt === undefined;
}

function sameAs(known: Agent | undefined, agent: Agent): Agent {
  return known && JSON.stringify(known) === JSON.stringify(agent) ? known : agent;
}
