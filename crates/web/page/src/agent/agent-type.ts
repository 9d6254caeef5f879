import type { AgentType, Client } from "@tokenrail/client";
import { useConnection, useTokenrail } from "@tokenrail/client/react";
import { useEffect, useState } from "react";

/** The types of a server, which are requested once for each connection: a server that was restarted may have others. */
const typesOf = new WeakMap<Client, Promise<readonly AgentType[]>>();

/** The agent type of that name. `undefined` while it is not known. */
export function useAgentType(type: string): AgentType | undefined {
  const client = useTokenrail();
  const isOpen = useConnection().state === "open";
  const [found, setFound] = useState<AgentType>();
  useEffect(() => {
    let isGone = false;
    if (!isOpen) typesOf.delete(client);
    asked(client).then(
      (types) => isGone || setFound(types.find((known) => known.type === type)),
      () => undefined,
    );
    return () => {
      isGone = true;
    };
  }, [client, type, isOpen]);
  // That of the agent that was shown before says nothing about this one.
  return found?.type === type ? found : undefined;
}

function asked(client: Client): Promise<readonly AgentType[]> {
  const known = typesOf.get(client);
  if (known) return known;
  const types = client.agentTypes();
  typesOf.set(client, types);
  // It is tried again for the next conversation.
  types.catch(() => typesOf.delete(client));
  return types;
}
