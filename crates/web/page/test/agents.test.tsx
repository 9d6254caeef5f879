import { type Agent, type Client, type ConnectionSnapshot, TokenrailError } from "@tokenrail/client";
import { TokenrailProvider } from "@tokenrail/client/react";
import { act, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { AgentList } from "../src/agents/AgentList.tsx";
import { useCounted, useOlder } from "../src/agents/counts.ts";
import { Home } from "../src/agents/Home.tsx";
import { useAgentTypes } from "../src/agents/types.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const demo = { type: "demo", runner: "replay", can: {}, available: true };
const away = () => new TokenrailError("network", "cannot reach the server", { retryable: true });

/** A server that may be away, and a connection to it. */
class Server {
  readonly agentTypes = vi.fn(() => (this.isAway ? Promise.reject(away()) : Promise.resolve([demo])));
  readonly activeAgents = vi.fn(() => Promise.resolve(this.active));
  active: readonly Partial<Agent>[] = [];
  isAway = false;
  #state: ConnectionSnapshot = { state: "connecting" } as ConnectionSnapshot;
  readonly #listeners = new Set<() => void>();
  readonly connection = {
    snapshot: () => this.#state,
    subscribe: (listener: () => void) => {
      this.#listeners.add(listener);
      return () => this.#listeners.delete(listener);
    },
  };

  connect(state: "open" | "waiting"): void {
    this.#state = { state } as ConnectionSnapshot;
    for (const listener of this.#listeners) listener();
  }

  pid: number | undefined = 4711;
  readonly server = () => Promise.resolve({ pid: this.pid });

  get client(): Client {
    return this as unknown as Client;
  }
}

function FirstPage() {
  return <Home types={useAgentTypes(true)} empty={false} onLaunched={() => undefined} />;
}

/** After what has been asked is answered, and so many milliseconds. */
async function after(ms = 0): Promise<void> {
  await act(() => vi.advanceTimersByTimeAsync(ms));
}

function showFirstPage(server: Server) {
  render(
    <TokenrailProvider client={server.client}>
      <FirstPage />
    </TokenrailProvider>,
  );
}

test("types that cannot be read are told as trouble, and are read when somebody tries again", async () => {
  const server = new Server();
  server.isAway = true;
  showFirstPage(server);
  await after();
  expect(screen.getByTestId("trouble").textContent).toContain("Cannot load the agent types: cannot reach the server.");
  expect(screen.queryByTestId("launch-demo")).toBeNull();
  server.isAway = false;
  fireEvent.click(screen.getByRole("button", { name: "Try again" }));
  await after();
  expect(screen.getByTestId("launch-demo")).toBeTruthy();
  expect(screen.queryByTestId("trouble")).toBeNull();
});

test("types that could not be read are read at once when the connection is back", async () => {
  const server = new Server();
  server.isAway = true;
  showFirstPage(server);
  await after();
  server.isAway = false;
  act(() => server.connect("open"));
  await after();
  expect(screen.getByTestId("launch-demo")).toBeTruthy();
});

test("types that could not be read are asked for again by and by, and those that could are not", async () => {
  const server = new Server();
  server.isAway = true;
  showFirstPage(server);
  for (const ms of [0, 5_000, 5_000, 2_000]) await after(ms);
  expect(server.agentTypes.mock.calls.length).toBe(3);
  server.isAway = false;
  await after(5_000);
  expect(screen.getByTestId("launch-demo")).toBeTruthy();
  act(() => server.connect("open"));
  await after(60_000);
  expect(server.agentTypes.mock.calls.length).toBe(4);
});

function agents(count: number, status = "completed"): Agent[] {
  const one = (_: unknown, index: number) => ({
    ...{ id: `a${index}`, type: "fake", status, prompt: "go", cwd: "/tmp", head: 1, createdAt: "2026-11-22T06:42:10.000Z" },
  });
  return Array.from({ length: count }, one) as unknown as Agent[];
}

const loadMore = vi.fn();

function List({ listed }: { readonly listed: readonly Agent[] }) {
  const older = useOlder(listed.length, loadMore);
  const counted = useCounted(listed, older.isThere);
  const nothing = () => undefined;
  return (
    <AgentList
      {...{ ...counted, loading: false, current: null, onOpen: nothing, onRetry: nothing }}
      onMore={older.isThere ? older.load : undefined}
    />
  );
}

function showList(server: Server) {
  const list = (count: number, status?: string) => (
    <TokenrailProvider client={server.client}>
      <List listed={agents(count, status)} />
    </TokenrailProvider>
  );
  const { rerender } = render(list(0));
  return (count: number, status?: string) => rerender(list(count, status));
}

function olderButton() {
  return screen.queryByRole("button", { name: "Load older agents" });
}

test("older agents can be had until there are none, whatever comes and goes meanwhile", () => {
  const become = showList(new Server());
  become(99);
  expect([olderButton(), screen.getByTestId("agent-counts").textContent]).toEqual([null, "99 in the list"]);
  for (const count of [100, 101, 98]) {
    become(count);
    expect(olderButton(), `${count}`).toBeTruthy();
    expect(screen.getByTestId("agent-counts").textContent).toBe(`${count} or more in the list`);
  }
  fireEvent.click(olderButton() as HTMLElement);
  expect(loadMore).toHaveBeenCalledOnce();
  become(130);
  expect([olderButton(), screen.getByTestId("agent-counts").textContent]).toEqual([null, "130 in the list"]);
});

test("those that are active and not in the list are counted too", async () => {
  const server = new Server();
  server.active = [{ id: "a3", head: 7 }, { id: "older", head: 2 }];
  const become = showList(server);
  become(100, "running");
  await after();
  const counts = screen.getByTestId("agent-counts");
  expect([counts.textContent, counts.title]).toEqual(["101 running", "101 running · 100 or more in the list"]);
});

test("a list that cannot be read says so, and not that it is empty", () => {
  const onRetry = vi.fn();
  render(
    <TokenrailProvider client={new Server().client}>
      <AgentList {...{ agents: [], active: 0, loading: false, error: away(), current: null, onRetry, onOpen: vi.fn() }} />
    </TokenrailProvider>,
  );
  expect(screen.getByTestId("trouble").textContent).toContain("Cannot load the agents: cannot reach the server.");
  expect(document.body.textContent).not.toContain("No agents in");
  expect(document.body.textContent).not.toContain("0 in the list");
  fireEvent.click(screen.getByRole("button", { name: "Try again" }));
  expect(onRetry).toHaveBeenCalledOnce();
});

test("an agent that has not begun yet is shown as starting", () => {
  showList(new Server())(1, "initializing");
  expect(screen.getByTestId("agent").textContent).toContain("starting");
});

test("the demo has the command that kills the server, and another one after a restart", async () => {
  const server = new Server();
  server.connect("open");
  showFirstPage(server);
  await after();
  expect(screen.getByTestId("kill-me").querySelector("code")?.textContent).toBe("kill -9 4711");
  server.pid = 4722;
  act(() => server.connect("waiting"));
  act(() => server.connect("open"));
  await after();
  expect(screen.getByTestId("kill-me").querySelector("code")?.textContent).toBe("kill -9 4722");
});

test("a user on another machine cannot kill the server, so there is no command", async () => {
  const server = new Server();
  server.pid = undefined;
  server.connect("open");
  showFirstPage(server);
  await after();
  expect(screen.getByTestId("launch-demo")).toBeTruthy();
  expect(screen.queryByTestId("kill-me")).toBeNull();
});
