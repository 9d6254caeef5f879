import { createContext, useContext } from "react";

/** Whose conversation it is. */
export const AgentId = createContext("");

export function useAgentId(): string {
  return useContext(AgentId);
}
