import { type ReactNode, createContext, createElement, useContext } from "react";
import type { Client } from "../api.js";

const Context = createContext<Client | undefined>(undefined);

export interface TokenrailProviderProps {
  client: Client;
  children?: ReactNode;
}

/** Provides the client to the hooks below it. */
export function TokenrailProvider({ client, children }: TokenrailProviderProps): ReactNode {
  return createElement(Context.Provider, { value: client }, children);
}

/** The client of the nearest provider. */
export function useTokenrail(): Client {
  const client = useContext(Context);
  if (!client) throw new Error("this component must be inside a <TokenrailProvider>");
  return client;
}
