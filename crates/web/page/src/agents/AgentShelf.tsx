import { useAgents } from "@tokenrail/client/react";
import { type ComponentProps, useState } from "react";

import { AgentList } from "./AgentList.tsx";
import { useOlder } from "./counts.ts";

type Props = Omit<ComponentProps<typeof AgentList>, "archived" | "onArchived">;

/** The list of agents, or that of the archived ones, which is read when the user wants to see it. */
export function AgentShelf(props: Props) {
  const [archived, setArchived] = useState(false);
  const { agents, loading, error, refetch, loadMore } = useAgents(archived, { archived: true });
  const older = useOlder(agents.length, loadMore);
  const shelf = { agents, loading, error, onRetry: refetch, onMore: older.isThere ? older.load : undefined };
  return <AgentList {...props} {...(archived && shelf)} archived={archived} onArchived={setArchived} />;
}
