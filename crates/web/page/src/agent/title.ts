import type { Agent } from "@tokenrail/client";

/** The name of the agent, or else the first line of its prompt. */
export function titleOf(agent: Agent): string {
  return agent.name || agent.prompt.trim().split("\n", 1)[0] || agent.id;
}
