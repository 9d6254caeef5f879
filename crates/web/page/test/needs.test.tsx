import type { Agent, Client, OpenQuestion } from "@tokenrail/client";
import { TokenrailProvider } from "@tokenrail/client/react";
import { act, fireEvent, render, screen, within } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { AgentList } from "../src/agents/AgentList.tsx";
import { useNotices } from "../src/agents/notices.ts";
import { useOldest, useOpenQuestions } from "../src/agents/open-questions.ts";
import { useTab } from "../src/app/tab.ts";

function agent(id: string, waitingSince?: string): Agent {
  const openQuestions = waitingSince ? 1 : 0;
  const common = { type: "fake", status: "running", prompt: `Do ${id}`, cwd: "/tmp", head: 1, createdAt: "2026-11-22T06:42:10.000Z" };
  return { id, ...common, openQuestions, ...(waitingSince && { waitingSince }) } as unknown as Agent;
}

const agents = [agent("a"), agent("b", "2026-11-22T06:43:00.000Z"), agent("c"), agent("d", "2026-11-22T06:42:30.000Z")];

function List({ listed, onNotify }: { readonly listed: readonly Agent[]; readonly onNotify?: () => void }) {
  const nothing = () => undefined;
  const props = { agents: listed, active: 0, loading: false, current: null, onOpen: nothing, onRetry: nothing, onNotify };
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

const until = (minutes: number) => new Date(Date.now() + minutes * 60_000).toISOString();

function Asking({ listed }: { readonly listed: readonly Agent[] }) {
  const nothing = () => undefined;
  const asked = useOldest(useOpenQuestions(listed));
  return <AgentList {...{ agents: listed, asked, active: 0, loading: false, current: null, onOpen: nothing, onRetry: nothing }} />;
}

test("the row of an agent that needs the user says what is asked, and how long it still waits", async () => {
  const questions = [
    { agentId: "d", requestId: "1-1", toolName: "Edit", input: { file_path: "/src/retry.rs", old_string: "a", new_string: "b" }, expiresAt: until(9) },
    { agentId: "d", requestId: "1-2", toolName: "Bash", input: { command: "rm -r build" }, expiresAt: until(3) },
    { agentId: "b", requestId: "1-1", toolName: "AskUserQuestion", input: { question: "Which database?" } },
  ];
  const client = { questions: vi.fn(() => Promise.resolve([...questions])) } as unknown as Client;
  const view = (listed: readonly Agent[]) => (
    <TokenrailProvider client={client}>
      <Asking listed={listed} />
    </TokenrailProvider>
  );
  const { rerender } = render(view([]));
  await act(async () => rerender(view(agents)));
  const rows = () => screen.getAllByTestId("agent").map(({ textContent }) => textContent);
  expect(rows().slice(0, 3)).toEqual(["Do dNeeds youEdit retry.rs9 min left", "Do bNeeds youWhich database?", expect.stringContaining("fake")]);
  questions.shift();
  await act(async () => rerender(view(agents.map((each) => (each.id === "d" ? { ...each, waitingSince: "2026-11-22T06:44:00.000Z" } : each)))));
  expect(rows()).toContain("Do dNeeds youBash: rm -r build3 min left");
  await act(async () => rerender(view(agents.map((each) => ({ ...each, openQuestions: 0 })))));
  expect(screen.queryByTestId("asked")).toBeNull();
});

test("the tooltip of a row has what the row has no room for", () => {
  const more = { cwd: "/src/shop", model: "opus", costUsd: 0.25, usage: { input_tokens: 12_000, output_tokens: 300 } };
  render(<List listed={[{ ...agent("a"), ...more } as Agent]} />);
  expect(screen.getByTestId("agent").title.split("\n")).toEqual([
    "Do a",
    "Folder: /src/shop",
    "Model: opus",
    "Tokens: 12K in, 300 out",
    "Cost: $0.2500",
  ]);
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

/** What the browser was asked to show. */
let shown: { title: string; body: string; tag: string; onclick?: () => void }[] = [];

class Browser {
  static permission: NotificationPermission = "default";
  static requestPermission = vi.fn(() => {
    Browser.permission = "granted";
    return Promise.resolve<NotificationPermission>("granted");
  });
  readonly close = vi.fn();

  constructor(title: string, { body, tag }: { body: string; tag: string }) {
    shown.push(Object.assign(this, { title, body, tag }));
  }
}

let hidden = false;

beforeEach(() => {
  shown = [];
  hidden = false;
  Browser.permission = "default";
  Browser.requestPermission.mockClear();
  vi.stubGlobal("Notification", Browser);
  vi.spyOn(document, "hidden", "get").mockImplementation(() => hidden);
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const onOpen = vi.fn();

function Noticing({ agents }: { readonly agents: readonly Agent[] }) {
  const ask = useNotices(agents, useOpenQuestions(agents), onOpen);
  return ask ? <button onClick={ask}>Notify me</button> : null;
}

function notice(questions: () => Partial<OpenQuestion>[]) {
  const client = { questions: vi.fn(() => Promise.resolve([...questions()])) };
  const view = (agents: readonly Agent[]) => (
    <TokenrailProvider client={client as unknown as Client}>
      <Noticing agents={agents} />
    </TokenrailProvider>
  );
  const { rerender } = render(view([]));
  const become = (agents: readonly Agent[]) => act(async () => rerender(view(agents)));
  return { client, become };
}

test("each request is notified once, while the page is hidden, and only after the user has allowed it", async () => {
  const open = [{ agentId: "b", requestId: "1-1", toolName: "Bash" }];
  const { become } = notice(() => open);
  const first = agent("b", "2026-11-22T06:43:00.000Z");
  await become([first]);
  expect([shown, Browser.requestPermission.mock.calls.length]).toEqual([[], 0]);
  await act(async () => fireEvent.click(screen.getByText("Notify me")));
  expect(screen.queryByText("Notify me")).toBeNull();
  expect(shown).toEqual([]);

  hidden = true;
  open.push({ agentId: "b", requestId: "1-2", toolName: "Write" });
  await become([{ ...first, openQuestions: 2 }]);
  await become([{ ...first, openQuestions: 2, head: 7 }]);
  expect(shown.map(({ title, body, tag }) => [title, body, tag])).toEqual([["Do b needs you", "Allow Write?", "b 1-2"]]);
  await become([]);
  await become([first]);
  expect(shown.length).toBe(1);
  shown[0]?.onclick?.();
  expect(onOpen).toHaveBeenCalledWith("b");
});

test("the notification of a question says so, and that of a permission names the tool", async () => {
  Browser.permission = "granted";
  hidden = true;
  const asked = (requestId: string, toolName: string) => ({ agentId: "b", requestId, toolName });
  const { become } = notice(() => [asked("1-1", "AskUserQuestion"), asked("1-2", "Bash"), asked("1-3", "")]);
  await become([agent("b", "2026-11-22T06:43:00.000Z")]);
  expect(shown.map(({ body }) => body)).toEqual(["The agent has a question for you.", "Allow Bash?", "Allow a tool?"]);
});

test("a browser that knows no notifications is not asked for them", async () => {
  vi.stubGlobal("Notification", undefined);
  const { become } = notice(() => [{ agentId: "b", requestId: "1-1", toolName: "Bash" }]);
  await become([agent("b", "2026-11-22T06:43:00.000Z")]);
  expect([shown, screen.queryByText("Notify me")]).toEqual([[], null]);
});
