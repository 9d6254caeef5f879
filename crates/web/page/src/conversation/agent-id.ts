import { createContext, useContext } from "react";

/** The agent of the conversation. */
export const AgentId = createContext("");

export function useAgentId(): string {
  return useContext(AgentId);
}
