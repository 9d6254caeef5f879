import type { Agent } from "@tokenrail/client";

/** The folder of all agents that have one of their own. */
export const ownFolder = "a folder of its own";

/** Whether the agent works in a folder that was made for it, or is a copy of such an agent. */
export function hasOwnFolder({ id, replayOf, cwd }: Agent): boolean {
  return cwd.includes(id) || (replayOf !== undefined && cwd.includes(replayOf));
}
