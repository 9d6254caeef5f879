import type { Agent } from "@tokenrail/client";

/** The server accepts no longer names. */
export const longestName = 200;

/** How many agents are changed at the same time. */
const atOnce = 4;

export interface Failed {
  readonly agent: Agent;
  readonly error: Error;
}

/** Does something with each of the agents, a few at a time. Returns those with which it failed, in their order. */
export async function withEach(agents: readonly Agent[], act: (agent: Agent) => Promise<unknown>): Promise<Failed[]> {
  const failed = new Map<Agent, Error>();
  const waiting = [...agents];
  const work = async () => {
    for (let agent = waiting.shift(); agent; agent = waiting.shift()) {
      try {
        await act(agent);
      } catch (error) {
        failed.set(agent, error as Error);
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return agents.flatMap((agent) => {
    const error = failed.get(agent);
    return error ? [{ agent, error }] : [];
  });
}

/** The typed name for the server. An empty one removes the name. */
export function asName(typed: string): string | null {
  return typed.trim() || null;
}
