import type { Agent } from "@tokenrail/client";
import { TokenrailProvider } from "@tokenrail/client/react";
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";

import { Composer } from "../src/conversation/Composer.tsx";
import { Facts } from "../src/conversation/Facts.tsx";
import { FakeClient } from "./fake-client.ts";

afterEach(cleanup);

function show(of: Partial<Agent>) {
  const fake = new FakeClient();
  const agent = { ...fake.agentNow, status: "completed", ...of } as Agent;
  render(
    <TokenrailProvider client={fake.client}>
      <Facts agent={agent} items={[]} head={1} />
      <Composer agent={agent} send={() => Promise.resolve()} />
    </TokenrailProvider>,
  );
  return screen.getByTestId("facts").textContent;
}

test("the details name the agent's node, only if several servers share the database", () => {
  expect(show({})).not.toContain("Node");
  cleanup();
  expect(show({ node: "node-a" })).toContain("Nodenode-a");
  expect(screen.getByTestId("composer")).toBeTruthy();
});

test("an agent whose server has been stopped accepts messages, which wait", () => {
  expect(show({ node: "node-a", nodeState: "away" })).toContain("Nodenode-aaway");
  expect(screen.getByTitle(/Messages wait/)).toBeTruthy();
  expect(screen.getByTestId("composer")).toBeTruthy();
});

test("an agent whose server is lost says why it accepts no messages", () => {
  expect(show({ node: "node-a", nodeState: "lost" })).toContain("Nodenode-alost");
  expect(screen.queryByTestId("composer")).toBeNull();
  expect(screen.getByTestId("composer-closed").textContent).toBe(
    "The node node-a, which has this agent's folder, does not respond. This agent cannot move to another node, so it accepts no messages until the node is back. Everything that was saved is shown.",
  );
});

test("an agent whose server was removed says how to continue", () => {
  expect(show({ node: "node-a", nodeState: "gone" })).toContain("Nodenode-agone");
  expect(screen.queryByTestId("composer")).toBeNull();
  expect(screen.getByTestId("composer-closed").textContent).toBe(
    "The node node-a, which had this agent's folder, was removed. This agent cannot move to another node, so it accepts no messages unless that node is started again. To continue now, launch a new agent.",
  );
});

test("the details tell queued turns from those that have started", () => {
  expect(show({ turn: 3, queued: 0 })).toMatch(/Turns3(?! started)/);
  cleanup();
  expect(show({ turn: 3, queued: 2 })).toContain("Turns3 started, 2 queued");
});
