import { createContext, useContext } from "react";

/** Answers a permission request with one of its options. */
export type Answer = (requestId: string, optionId: string) => Promise<unknown>;

/** The function that answers. Undefined if the conversation is read-only. */
export const Answering = createContext<Answer | undefined>(undefined);

export function useAnswering(): Answer | undefined {
  return useContext(Answering);
}
