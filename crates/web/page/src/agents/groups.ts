import type { Agent } from "@tokenrail/client";

import { isActive, needsYou } from "../agent/StatusBadge.tsx";

const names = ["Needs you", "Pinned", "Running", "Today", "Earlier"] as const;

export interface Group {
  readonly name: (typeof names)[number];
  readonly agents: readonly Agent[];
}

/** The agents in groups, without empty ones. `today` is the day of the user, as `dayOf` returns it. */
export function groupsOf(agents: readonly Agent[], today: string): Group[] {
  const group = (agent: Agent): Group["name"] => {
    if (needsYou(agent)) return "Needs you";
    if (agent.pinned) return "Pinned";
    if (isActive(agent.status)) return "Running";
    return dayOf(Date.parse(agent.createdAt)) === today ? "Today" : "Earlier";
  };
  const of = new Map(names.map((name): [Group["name"], Agent[]] => [name, []]));
  for (const agent of agents) of.get(group(agent))?.push(agent);
  of.get("Needs you")?.sort(longestFirst);
  return [...of].filter(([, { length }]) => length > 0).map(([name, grouped]) => ({ name, agents: grouped }));
}

/** The first `most` agents of all groups together. The agents that need the user are all there, in addition. */
export function firstOf(groups: readonly Group[], most: number): Group[] {
  let left = most;
  const cut = groups.map(({ name, agents }): Group => {
    if (name === "Needs you") return { name, agents };
    const first = agents.slice(0, left);
    left -= first.length;
    return { name, agents: first };
  });
  return cut.filter(({ agents }) => agents.length > 0);
}

/** The agent before (-1) or after (1) this one in the list. Without one, the first or the last of the list. */
export function neighbourOf(agents: readonly Agent[], id: string | null, by: -1 | 1): Agent | undefined {
  const order = groupsOf(agents, dayOf(Date.now())).flatMap((group) => group.agents);
  const at = order.findIndex((agent) => agent.id === id);
  return at < 0 ? order.at(by === 1 ? 0 : -1) : order[at + by];
}

/** The day in the user's time zone. */
export function dayOf(time: number): string {
  return new Date(time).toDateString();
}

function longestFirst(one: Agent, other: Agent): number {
  return (one.waitingSince ?? "").localeCompare(other.waitingSince ?? "");
}
