import type { AgentType, Client } from "@tokenrail/client";
import { useTokenrail } from "@tokenrail/client/react";
import { useEffect, useState } from "react";

/** The types of a server, which are requested once. */
const typesOf = new WeakMap<Client, Promise<readonly AgentType[]>>();

/** Whether agents of a type accept images. `undefined` while it is not known. */
export function useSeesImages(type: string): boolean | undefined {
  const client = useTokenrail();
  const [sees, setSees] = useState<boolean>();
  useEffect(() => {
    let isGone = false;
    asked(client).then(
      (types) => isGone || setSees(types.find((known) => known.type === type)?.can.images),
      () => undefined,
    );
    return () => {
      isGone = true;
    };
  }, [client, type]);
  return sees;
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
