import { createContext, useContext } from "react";

/** Whether the first picture of a conversation has been painted; it does without what is only seen under the pointer. */
export const Painted = createContext(true);

export function usePainted(): boolean {
  return useContext(Painted);
}
