import type { Agent } from "@tokenrail/client";
import { act, cleanup, fireEvent, render, screen, within } from "@testing-library/react";
import axe from "axe-core";
import { beforeEach, expect, test, vi } from "vitest";

import { commandsOf } from "../src/app/commands.ts";
import { keptTheme } from "../src/app/kept-theme.ts";
import { Palette } from "../src/app/Palette.tsx";
import { ThemeButton, useTheme } from "../src/app/theme.tsx";
import { useAskedTo } from "../src/conversation/orders.ts";
import { FakeClient, away } from "./fake-client.ts";

// The browser for these tests knows no modal dialogs. A closed one gives the focus back.
beforeEach(() => {
  let before: Element | null = null;
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true;
  };
  HTMLDialogElement.prototype.close = function () {
    this.open = false;
    (before as HTMLElement | null)?.focus();
    this.dispatchEvent(new Event("close"));
  };
  // React gives the focus to the field before the dialog is modal, so it is noted when the key is pressed.
  window.addEventListener("keydown", () => (before = document.querySelector("dialog") ? before : document.activeElement), { capture: true });
  localStorage.clear();
});

const agent = (id: string, prompt: string, more: object = {}) =>
  ({ id, prompt, type: "fake", status: "completed", openQuestions: 0, ...more }) as unknown as Agent;

const agents = [
  agent("a1", "Fix the login"),
  agent("a2", "Write the report", { status: "running" }),
  agent("a3", "Tidy up", { status: "running", openQuestions: 1 }),
  agent("a4", "Log less", { status: "running", openQuestions: 1 }),
];

const onOpen = vi.fn();

interface AppProps {
  readonly fake: FakeClient;
  readonly agentId: string | null;
  readonly listed?: readonly Agent[];
}

function App({ fake, agentId, listed = agents }: AppProps) {
  const [, onTheme] = useTheme();
  return (
    <>
      <input aria-label="Message" />
      <ThemeButton />
      <Palette commandsNow={() => commandsOf({ client: fake.client, agents: listed, agentId, onOpen, onTheme })} />
    </>
  );
}

function show(agentId: string | null = null) {
  onOpen.mockClear();
  const fake = new FakeClient();
  render(<App fake={fake} agentId={agentId} />);
  return fake;
}

const open = (modifier: object = { ctrlKey: true }) => fireEvent.keyDown(window, { key: "k", ...modifier });
const box = () => screen.getByRole("combobox");
const options = () => screen.queryAllByRole("option").map((option) => option.firstChild?.textContent);
const chosen = () => screen.getByRole("option", { selected: true });
const press = (...keys: string[]) => keys.forEach((key) => fireEvent.keyDown(box(), { key }));
const write = (text: string) => fireEvent.change(box(), { target: { value: text } });

test("an agent is found and opened by the keyboard alone", async () => {
  show();
  open();
  expect(document.activeElement).toBe(box());
  write("log");
  // Labels that begin with the words come first.
  expect(options()).toEqual(["Log less", "Fix the login"]);
  press("ArrowDown");
  expect(box().getAttribute("aria-activedescendant")).toBe(chosen().id);
  expect(chosen().textContent).toContain("Fix the login");
  press("ArrowDown");
  expect(chosen().textContent).toContain("Log less");
  press("ArrowUp");
  await act(async () => press("Enter"));
  expect(onOpen).toHaveBeenCalledWith("a1");
  expect(screen.queryByRole("dialog")).toBeNull();
});

test("the keys work while the user writes, and with Cmd, and close it again", () => {
  show();
  const message = screen.getByLabelText("Message");
  fireEvent.keyDown(message, { key: "k", metaKey: true });
  expect(screen.getByRole("dialog", { name: "Commands" })).toBeTruthy();
  open();
  expect(screen.queryByRole("dialog")).toBeNull();
  open({});
  expect(screen.queryByRole("dialog")).toBeNull();
  open();
  fireEvent(screen.getByRole("dialog"), new Event("close"));
  expect(screen.queryByRole("dialog")).toBeNull();
});

test("the next agent that needs the user is the one after the current one", async () => {
  for (const [current, next] of [[null, "a3"], ["a3", "a4"], ["a4", "a3"]] as const) {
    show(current);
    open();
    expect(options()[0]).toBe("Next agent that needs you");
    await act(async () => press("Enter"));
    expect(onOpen).toHaveBeenCalledWith(next);
    cleanup();
  }
});

test("what can be done with the current agent depends on its state", async () => {
  const fake = show("a2");
  open();
  expect(options()).toContain("Stop the running turn");
  expect(options()).not.toContain("Export this agent");
  write("cancel");
  fake.cancel.mockRejectedValueOnce(away());
  await act(async () => press("Enter"));
  expect(within(screen.getByRole("dialog")).getByRole("alert").textContent).toContain("Cannot reach the server.");
  await act(async () => press("Enter"));
  expect(fake.cancel.mock.calls.map(([id]) => id)).toEqual(["a2", "a2"]);
  expect(screen.queryByRole("dialog")).toBeNull();
});

test("an agent that has ended can be exported, and none without an agent", () => {
  show("a1");
  open();
  expect(options()).toContain("Export this agent");
  expect(options()).not.toContain("Stop the running turn");
  cleanup();
  show();
  open();
  expect(options()).not.toContain("Export this agent");
});

test("the theme is kept for all tabs, and the button knows it", async () => {
  show();
  open();
  write("dark");
  await act(async () => press("Enter"));
  expect([document.documentElement.dataset["theme"], keptTheme()]).toEqual(["dark", "dark"]);
  expect(screen.getByTestId("theme").getAttribute("aria-label")).toBe("Theme: dark. Switch to system");
  localStorage.setItem("tokenrail-theme", "light");
  act(() => void window.dispatchEvent(new StorageEvent("storage")));
  expect(document.documentElement.dataset["theme"]).toBe("light");
});

test("words that nothing has say so", async () => {
  show();
  open();
  write("no such thing");
  expect(screen.getByRole("dialog").textContent).toContain("Nothing matches.");
  await act(async () => press("ArrowDown", "Enter"));
  expect(screen.getByRole("dialog")).toBeTruthy();
});

test("axe finds nothing in the palette", async () => {
  show();
  open();
  const { violations } = await axe.run(screen.getByRole("dialog"), { rules: { "color-contrast": { enabled: false } } });
  expect(violations.map(({ id }) => id)).toEqual([]);
});

test("the chosen command stays the same while the list of agents changes", async () => {
  onOpen.mockClear();
  const fake = new FakeClient();
  const { rerender } = render(<App fake={fake} agentId={null} />);
  open();
  write("log");
  press("ArrowDown");
  expect(chosen().textContent).toContain("Fix the login");
  rerender(<App fake={fake} agentId={null} listed={[agent("a0", "Login page"), ...agents]} />);
  expect(chosen().textContent).toContain("Fix the login");
  await act(async () => press("Enter"));
  expect(onOpen).toHaveBeenCalledExactlyOnceWith("a1");
});

test("a closed palette gives the focus back, however it was closed", async () => {
  show();
  const message = screen.getByLabelText("Message");
  const ways = [
    () => open(),
    () => fireEvent.click(screen.getByRole("dialog")),
    async () => {
      write("light");
      await act(async () => press("Enter"));
    },
  ];
  for (const close of ways) {
    message.focus();
    fireEvent.keyDown(message, { key: "k", ctrlKey: true });
    expect(document.activeElement).toBe(box());
    await close();
    expect(screen.queryByRole("dialog")).toBeNull();
    expect(document.activeElement).toBe(message);
  }
});

test("a key that is held down opens the palette once, and runs a command once", async () => {
  const fake = show("a2");
  open();
  fireEvent.keyDown(window, { key: "k", ctrlKey: true, repeat: true });
  expect(screen.getByRole("dialog")).toBeTruthy();
  write("stop the running turn");
  fake.cancel.mockReturnValue(new Promise(() => {}));
  fireEvent.keyDown(box(), { key: "Enter" });
  fireEvent.keyDown(box(), { key: "Enter", repeat: true });
  expect(fake.cancel).toHaveBeenCalledOnce();
});

test("an agent that is not in the list has its commands too, such as an archived one", () => {
  const shown = agent("old", "Look back", { archived: true });
  const fake = new FakeClient();
  const labels = (now: Agent) =>
    commandsOf({ client: fake.client, agents, agentId: "old", shown: now, onOpen, onTheme: () => {} }).map(({ label }) => label);
  expect(labels(shown)).toEqual(expect.arrayContaining(["Rename this agent", "Unarchive this agent", "Export this agent"]));
  expect(labels({ ...shown, deletedAt: "2026-11-22T06:42:10.000Z" })).not.toContain("Rename this agent");
});

test("a command that ends late does not close a palette that was opened again", async () => {
  const fake = show("a2");
  let done = () => {};
  fake.cancel.mockImplementationOnce(() => new Promise((resolve) => (done = () => resolve({ agentId: "a2" }))));
  open();
  write("stop");
  press("Enter");
  open();
  open();
  await act(async () => done());
  expect(screen.getByRole("dialog", { name: "Commands" })).toBeTruthy();
});

test("a copy is distinguished from its original", () => {
  const copies = [agent("o", "Demo"), agent("r", "Demo", { replayOf: "o", readOnly: true }), agent("i", "Demo", { readOnly: true })];
  render(<App fake={new FakeClient()} agentId={null} listed={copies} />);
  open();
  write("demo");
  const hints = screen.getAllByRole("option").map((option) => option.lastChild?.textContent);
  expect(hints).toEqual(["fake · completed", "replay · fake · completed", "imported · fake · completed"]);
});

test("actions and agents are in groups of their own, and actions show their keys", () => {
  show("a1");
  open();
  const groups = screen.getAllByRole("group").map((group) => [group.getAttribute("aria-label"), within(group).getAllByRole("option").length > 3]);
  expect(groups).toEqual([["Actions", true], ["Agents", true]]);
  const keys = screen.getAllByRole("option").flatMap((option) => {
    const key = option.querySelector("kbd")?.textContent;
    return key ? [`${option.firstChild?.textContent}: ${key}`] : [];
  });
  expect(keys).toEqual([
    "Next agent that needs you: G N",
    "New agent: N",
    "Search this conversation: /",
    "Changed files: F",
    "Developer details: D",
  ]);
  write("log");
  expect(screen.getAllByRole("group").map((group) => group.getAttribute("aria-label"))).toEqual(["Agents"]);
});

test("the palette asks the conversation on screen to do what it offers", async () => {
  const asked: string[] = [];
  const orders = ["search", "changes", "replay", "details"] as const;
  const Conversation = () => {
    for (const order of orders) useAskedTo(order, () => asked.push(order));
    return null;
  };
  render(<Conversation />);
  show("a1");
  for (const words of ["search this", "changed files", "replay", "developer"]) {
    open();
    write(words);
    await act(async () => press("Enter"));
  }
  await vi.waitFor(() => expect(asked).toEqual(["search", "changes", "replay", "details"]));
  cleanup();
  show("a2");
  open();
  expect(options()).not.toContain("Replay in this browser");
});
