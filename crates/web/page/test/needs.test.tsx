import type { Agent, Client } from "@tokenrail/client";
import { TokenrailProvider } from "@tokenrail/client/react";
import { fireEvent, render, screen, within } from "@testing-library/react";
import { expect, test } from "vitest";

import { AgentList } from "../src/agents/AgentList.tsx";
import { useTab } from "../src/app/tab.ts";

function agent(id: string, waitingSince?: string): Agent {
  const openQuestions = waitingSince ? 1 : 0;
  const common = { type: "fake", status: "running", prompt: `Do ${id}`, head: 1, createdAt: "2026-11-22T06:42:10.000Z" };
  return { id, ...common, openQuestions, ...(waitingSince && { waitingSince }) } as unknown as Agent;
}

const agents = [agent("a"), agent("b", "2026-11-22T06:43:00.000Z"), agent("c"), agent("d", "2026-11-22T06:42:30.000Z")];

function List({ listed }: { readonly listed: readonly Agent[] }) {
  const nothing = () => undefined;
  const props = { agents: listed, active: 0, loading: false, current: null, onOpen: nothing, onRetry: nothing };
  return (
    <TokenrailProvider client={{} as Client}>
      <AgentList {...props} />
    </TokenrailProvider>
  );
}

function listed(within_: HTMLElement): (string | undefined)[] {
  return within(within_)
    .queryAllByTestId("agent")
    .map((item) => `${item.dataset["agentId"]} ${item.querySelector<HTMLElement>("[data-status]")?.dataset["status"]}`);
}

test("agents that wait come first, and the one that waits longest is the first of them", () => {
  render(<List listed={agents} />);
  expect(listed(screen.getByTestId("agents"))).toEqual(["d needs-you", "b needs-you", "a running", "c running"]);
  const group = screen.getByRole("region", { name: "Needs you" });
  expect(listed(group)).toEqual(["d needs-you", "b needs-you"]);
  expect(within(group).getAllByTestId("agent")[0]?.textContent).toContain("Needs you");
});

test("nobody waits: there is no group", () => {
  render(<List listed={[agent("a"), { ...agent("b", "x"), status: "cancelled" }]} />);
  expect(screen.queryByTestId("needs-you")).toBeNull();
  expect(listed(screen.getByTestId("agents"))).toEqual(["a running", "b cancelled"]);
});

test("the filter finds those that need somebody by these words", () => {
  render(<List listed={[...agents, agent("e")]} />);
  fireEvent.change(screen.getByLabelText("Filter agents"), { target: { value: "needs you" } });
  expect(listed(screen.getByTestId("agents"))).toEqual(["d needs-you", "b needs-you"]);
});

function Tab({ subject, waiting }: { readonly subject?: string; readonly waiting: number }) {
  useTab(subject, waiting);
  return null;
}

test("the tab says what it shows, and how many agents wait", () => {
  document.head.innerHTML = '<link rel="icon" href="/icon.svg">';
  const tab = () => [document.title, document.querySelector("link")?.getAttribute("href")];
  const { rerender } = render(<Tab waiting={0} />);
  expect(tab()).toEqual(["Tokenrail", "/icon.svg"]);
  rerender(<Tab waiting={2} />);
  expect(tab()).toEqual(["(2) Tokenrail", "/icon-waiting.svg"]);
  rerender(<Tab subject="Fix the test" waiting={1} />);
  expect(tab()).toEqual(["(1) Fix the test · Tokenrail", "/icon-waiting.svg"]);
  rerender(<Tab subject={"x".repeat(200)} waiting={0} />);
  expect(tab()).toEqual([`${"x".repeat(80)}… · Tokenrail`, "/icon.svg"]);
});
