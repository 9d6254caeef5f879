import { applyEvents, type Agent, type Client, emptyTranscript } from "@tokenrail/client";
import { TokenrailProvider } from "@tokenrail/client/react";
import { render, screen } from "@testing-library/react";
import { createRef } from "react";
import { expect, test, vi } from "vitest";

import { AgentList } from "../src/agents/AgentList.tsx";
import { MenuButton } from "../src/app/App.tsx";
import { type ListHandle, MessageList } from "../src/conversation/MessageList.tsx";
import { Pulse } from "../src/conversation/Pulse.tsx";
import { rowsOf } from "../src/conversation/rows.ts";
import { Told } from "./events.ts";

const agent = (id: string, openQuestions: number) =>
  ({ id, openQuestions, type: "fake", status: "running", prompt: id, cwd: "/tmp", head: 1, createdAt: "2026-11-22T06:42:10.000Z" }) as unknown as Agent;

test("an agent that waits for the user is not counted as running", () => {
  const props = { loading: false, current: null, onOpen: vi.fn(), onRetry: vi.fn() };
  const view = (agents: readonly Agent[], active = agents.length) => (
    <TokenrailProvider client={{} as Client}>
      <AgentList {...props} agents={agents} active={active} />
    </TokenrailProvider>
  );
  const { rerender } = render(view([agent("a", 0), agent("b", 1), agent("c", 2)]));
  const counts = () => [screen.getByTestId("agent-counts").textContent, screen.getByTestId("agent-counts").title];
  // The total has no room beside them.
  expect(counts()).toEqual(["2 need you · 1 running", "2 need you · 1 running · 3 in the list"]);
  rerender(view([agent("b", 1)]));
  expect(counts()).toEqual(["1 needs you", "1 needs you · 1 in the list"]);
  rerender(view([{ ...agent("b", 0), status: "completed" }], 0));
  expect(counts()).toEqual(["1 in the list", "1 in the list"]);
});

test("the button of the closed list says how many agents wait", () => {
  const view = (waiting: number, isOpen = false) => <MenuButton ref={null} isOpen={isOpen} waiting={waiting} onToggle={vi.fn()} />;
  const { rerender } = render(view(2));
  const button = () => screen.getByTestId("menu");
  expect([button().getAttribute("aria-label"), button().textContent]).toEqual(["Agents: 2 need you", "2"]);
  rerender(view(2, true));
  expect(button().textContent).toBe("");
  rerender(view(0));
  expect([button().getAttribute("aria-label"), button().textContent]).toEqual(["Agents", ""]);
});

test("nothing turns and no speed is shown while the agent waits for the user", () => {
  const told = new Told().prompt("go").asked("1-1", "Bash", { command: "ls" }, []);
  const { items } = applyEvents(emptyTranscript, told.events);
  vi.stubGlobal("ResizeObserver", class { observe() {} unobserve() {} disconnect() {} });
  const handle = createRef<ListHandle>();
  render(
    <>
      <Pulse items={items} isHidden />
      <MessageList rows={rowsOf(items)} plain={false} found={undefined} busy loading={false} handle={handle} />
    </>,
  );
  expect(screen.queryByTestId("pulse")).toBeNull();
  const working = screen.getAllByTestId("working");
  expect(working.map((each) => [each.textContent?.trim(), each.querySelector(".spinner")])).toEqual(
    working.map(() => ["Waiting for your answer…", null]),
  );
  vi.unstubAllGlobals();
});
