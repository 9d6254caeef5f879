import { createContext, useContext } from "react";

/** Whether the first paint of a conversation is done. The first paint omits what is only visible under the pointer. */
export const Painted = createContext(true);

export function usePainted(): boolean {
  return useContext(Painted);
}
