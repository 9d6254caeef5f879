import type { Agent } from "@tokenrail/client";
import { TokenrailProvider } from "@tokenrail/client/react";
import { act, fireEvent, render, screen, within } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { AgentList } from "../src/agents/AgentList.tsx";
import { neighbourOf } from "../src/agents/groups.ts";
import { Told } from "./events.ts";
import { FakeClient } from "./fake-client.ts";

const now = new Date(2026, 10, 22, 12, 0);
beforeEach(() => void vi.useFakeTimers({ now }));
afterEach(() => void vi.useRealTimers());

const hour = 3_600_000;

function agent(id: string, hoursAgo: number, more: object = {}): Agent {
  const common = { type: "fake", status: "completed", prompt: `Do ${id}`, head: 1, openQuestions: 0, cwd: `/data/${id}/work` };
  return { id, ...common, createdAt: new Date(now.getTime() - hoursAgo * hour).toISOString(), ...more } as unknown as Agent;
}

const agents = [
  agent("new", 1),
  agent("asks", 2, { status: "running", openQuestions: 1, waitingSince: "2026-11-22T09:00:00.000Z", cwd: "/src/shop" }),
  agent("runs", 30, { status: "running", type: "claude-code", cwd: "/src/shop" }),
  agent("starts", 3, { status: "initializing", cwd: "/old/shop" }),
  agent("copy", 13, { readOnly: true, status: "failed" }),
  agent("again", 11, { readOnly: true, replayOf: "new" }),
];

function List({ listed, current = null }: { readonly listed: readonly Agent[]; readonly current?: string | null }) {
  const nothing = () => undefined;
  return <AgentList {...{ agents: listed, active: 0, loading: false, current, onOpen: nothing, onRetry: nothing }} />;
}

function show(listed: readonly Agent[], current: string | null = null, fake = new FakeClient()) {
  render(
    <TokenrailProvider client={fake.client}>
      <List listed={listed} current={current} />
    </TokenrailProvider>,
  );
}

function groups(): Record<string, (string | undefined)[]> {
  const regions = screen.queryAllByRole("region");
  const entry = (region: HTMLElement) => [
    within(region).getByRole("heading").textContent,
    within(region).getAllByTestId("agent").map((item) => item.dataset["agentId"]),
  ];
  return Object.fromEntries(regions.map(entry));
}

/** The chips are behind a button. */
function showChips(): void {
  const more = screen.getByRole<HTMLButtonElement>("button", { name: "More filters" });
  if (more.getAttribute("aria-expanded") === "false") fireEvent.click(more);
}

function choose(chip: string, value: string): void {
  showChips();
  fireEvent.change(screen.getByLabelText(`Filter by ${chip}`), { target: { value } });
}

function offered(chip: string): (string | null)[] {
  showChips();
  return [...screen.getByLabelText<HTMLSelectElement>(`Filter by ${chip}`).options].map(({ textContent }) => textContent);
}

test("agents are in groups: those that need the user, those that run, today's, and earlier ones", () => {
  show(agents);
  const found = { "Needs you": ["asks"], Running: ["runs", "starts"], Today: ["new", "again"], Earlier: ["copy"] };
  expect(groups()).toEqual(found);
  expect(Object.keys(groups())).toEqual(Object.keys(found));
});

test("an agent of today is one of yesterday after midnight", async () => {
  show([agent("new", 1)]);
  expect(groups()).toEqual({ Today: ["new"] });
  await act(() => vi.advanceTimersByTimeAsync(12 * hour));
  expect(groups()).toEqual({ Earlier: ["new"] });
});

test("chips filter by state, type and folder, and work together", () => {
  show(agents);
  expect(offered("status")).toEqual(["Status", "completed", "failed", "needs you", "running", "starting"]);
  expect(offered("type")).toEqual(["Type", "claude-code", "fake"]);
  // Folders with the same name show their paths. Folders that were made for an agent are one choice.
  expect(offered("folder")).toEqual(["Folder", "/old/shop", "/src/shop", "a folder of its own"]);
  choose("status", "starting");
  expect(groups()).toEqual({ Running: ["starts"] });
  choose("status", "running");
  expect(groups()).toEqual({ Running: ["runs"] });
  choose("status", "");
  choose("folder", "/src/shop");
  expect(groups()).toEqual({ "Needs you": ["asks"], Running: ["runs"] });
  choose("type", "claude-code");
  expect(groups()).toEqual({ Running: ["runs"] });
  fireEvent.change(screen.getByLabelText("Filter agents"), { target: { value: "copy" } });
  expect(groups()).toEqual({});
  expect(document.body.textContent).toContain("No agents match.");
});

test("a chip that would filter nothing is not there", () => {
  show(agents.map((each) => ({ ...each, type: "fake" })));
  expect(screen.queryByLabelText("Filter by type")).toBeNull();
});

test("imported agents and replays are marked", () => {
  show(agents);
  const tags = screen.getAllByTestId("agent").map((item) => item.querySelector(".tag")?.textContent);
  expect(tags).toEqual([undefined, undefined, undefined, undefined, "replay", "imported"]);
});

test("the agent on screen has as many events in the list as in the conversation", async () => {
  const fake = new FakeClient();
  show([{ ...fake.agentNow, createdAt: agents[0]?.createdAt ?? "" }, ...agents], "a", fake);
  await act(() => vi.advanceTimersByTimeAsync(500));
  fake.arrive(new Told().prompt("go").text("m", "one").text("m", "two").events);
  await act(() => vi.advanceTimersByTimeAsync(100));
  expect(document.querySelector("[data-agent-id=a]")?.textContent).toContain("3 events");
});

test("all agents that need the user are listed, however many newer ones there are", () => {
  const many = Array.from({ length: 301 }, (_, index) => agent(`n${index}`, 1));
  show([...many, agent("asks", 30, { status: "running", openQuestions: 1 })]);
  expect(groups()["Needs you"]).toEqual(["asks"]);
  expect(groups()["Today"]).toHaveLength(300);
  expect(document.body.textContent).toContain("1 more agent is not shown. Use the filter to find it.");
});

test("the filter finds an agent by the words on its badge", () => {
  show(agents);
  for (const [words, ids] of [["starting", ["starts"]], ["needs you", ["asks"]], ["failed", ["copy"]]] as const) {
    fireEvent.change(screen.getByLabelText("Filter agents"), { target: { value: words } });
    expect(screen.getAllByTestId("agent").map((item) => item.dataset["agentId"])).toEqual(ids);
  }
});

test("the keys go through the agents in the order of the list", () => {
  show(agents);
  const order = screen.getAllByTestId("agent").map((item) => item.dataset["agentId"]);
  const walked = [neighbourOf(agents, null, 1)];
  for (let next = walked[0]; (next = neighbourOf(agents, next?.id ?? null, 1)); ) walked.push(next);
  expect(walked.map((agent) => agent?.id)).toEqual(order);
  expect(neighbourOf(agents, order[0] ?? null, -1)).toBeUndefined();
  expect(neighbourOf(agents, order[2] ?? null, -1)?.id).toBe(order[1]);
});

test("the chosen agent is brought into sight when it is opened and when its group changes, but not while the user scrolls", () => {
  // Each row is 50 pixels high, and the list shows two of them.
  vi.spyOn(Element.prototype, "getBoundingClientRect").mockImplementation(function (this: Element) {
    const list = screen.getByTestId("agents");
    if (this === list) return { top: 100, bottom: 200 } as DOMRect;
    const at = screen.getAllByTestId("agent").indexOf(this as HTMLElement);
    return { top: 100 + 50 * at - list.scrollTop, bottom: 150 + 50 * at - list.scrollTop } as DOMRect;
  });
  const fake = new FakeClient();
  const rows = (more: object = {}) => [...["a", "b", "c", "d", "e"].map((id, at) => agent(id, at + 1)), agent("z", 9, more)];
  const view = (listed: readonly Agent[], current: string | null) => (
    <TokenrailProvider client={fake.client}>
      <List listed={listed} current={current} />
    </TokenrailProvider>
  );
  const { rerender } = render(view(rows(), "z"));
  const list = screen.getByTestId("agents");
  const scroll = (top: number) => {
    list.scrollTop = top;
    fireEvent.scroll(list);
  };
  expect(list.scrollTop).toBe(200);
  fireEvent.scroll(list);
  rerender(view(rows({ pinned: true }), "z"));
  expect(list.scrollTop).toBe(0);
  fireEvent.scroll(list);
  // A row that is in sight does not move.
  rerender(view(rows({ pinned: true }), "a"));
  expect(list.scrollTop).toBe(0);
  scroll(150);
  rerender(view([{ ...agent("a", 1), pinned: true }, ...rows().slice(1)], "a"));
  expect(list.scrollTop).toBe(150);
  rerender(view(rows(), "b"));
  expect(list.scrollTop).toBe(50);
  fireEvent.scroll(list);
  scroll(200);
  vi.advanceTimersByTime(2_000);
  rerender(view([agent("a", 1), { ...agent("b", 2), pinned: true }, ...rows().slice(2)], "b"));
  expect(list.scrollTop).toBe(0);
  vi.restoreAllMocks();
});
