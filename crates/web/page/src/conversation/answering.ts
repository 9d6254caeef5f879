import { createContext, useContext } from "react";

/** Answers a question of the agent with one of its options. */
export type Answer = (requestId: string, optionId: string) => Promise<unknown>;

/** Who answers; nobody where the conversation is only looked at. */
export const Answering = createContext<Answer | undefined>(undefined);

export function useAnswering(): Answer | undefined {
  return useContext(Answering);
}
