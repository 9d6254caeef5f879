import type { Agent, AgentType } from "@tokenrail/client";

type Node = Pick<Agent, "node" | "nodeState">;

/** What is wrong with the server that runs the agent's turns, as sentences. Undefined if it is alive. */
export function aboutNode(agent: Node, type: AgentType | undefined): string | undefined {
  const { node, nodeState } = agent;
  if (isNodeLost(agent) && canMove(type)) {
    const state = nodeState === "lost" ? "does not respond" : "was removed";
    return `The node ${node}, which ran this agent, ${state}. Another node runs the next turn.`;
  }
  switch (nodeState) {
    case "away":
      return `The node ${node} is stopped, but is expected back. Messages wait until it is back.`;
    case "lost":
      return `The node ${node}, which has this agent's folder, does not respond. The agent accepts no messages until the node is back. Everything that was saved is shown.`;
    case "gone":
      return `The node ${node}, which had this agent's folder, was removed. The agent accepts no messages. Launch a new agent to continue.`;
    default:
      return undefined;
  }
}

/** Whether another server can run the agent's next turn: nothing of the agent is on the disk of a server. */
export function canMove(type: AgentType | undefined): boolean {
  return type?.runner === "http" || type?.runner === "proxy";
}

/** Whether the server that runs the agent's turns does not come back by itself. */
export function isNodeLost({ nodeState }: Pick<Agent, "nodeState">): boolean {
  return nodeState === "lost" || nodeState === "gone";
}
