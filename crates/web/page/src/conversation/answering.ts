import type { PermissionAnswer } from "@tokenrail/client";
import { createContext, useContext } from "react";

/** Answers a permission request. */
export type Answer = (requestId: string, answer: PermissionAnswer) => Promise<unknown>;

/** The function that answers. Undefined if the conversation is read-only. */
export const Answering = createContext<Answer | undefined>(undefined);

export function useAnswering(): Answer | undefined {
  return useContext(Answering);
}
