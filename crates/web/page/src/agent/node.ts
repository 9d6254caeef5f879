import type { Agent } from "@tokenrail/client";

/** What is wrong with the server that has the agent's folder, as sentences. Undefined if it is alive. */
export function aboutNode({ node, nodeState }: Pick<Agent, "node" | "nodeState">): string | undefined {
  switch (nodeState) {
    case "away":
      return `The node ${node} is stopped, but is expected back. Messages wait until it is back.`;
    case "lost":
      return `The node ${node}, which has this agent's folder, does not respond. This agent cannot move to another node, so it accepts no messages until the node is back. Everything that was saved is shown.`;
    case "gone":
      return `The node ${node}, which had this agent's folder, was removed. This agent cannot move to another node, so it accepts no messages unless that node is started again. To continue now, launch a new agent.`;
    default:
      return undefined;
  }
}

/** Whether the agent accepts no messages because of its server. */
export function isNodeLost({ nodeState }: Pick<Agent, "nodeState">): boolean {
  return nodeState === "lost" || nodeState === "gone";
}
