import { type Agent, type Client, type ConnectionSnapshot, TokenrailError } from "@tokenrail/client";
import { TokenrailProvider } from "@tokenrail/client/react";
import { act, cleanup, fireEvent, render, screen, within } from "@testing-library/react";
import axe from "axe-core";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { withEach } from "../src/agent/edits.ts";
import { AgentList } from "../src/agents/AgentList.tsx";

const open: ConnectionSnapshot = { state: "open" };
const fake = {
  edit: vi.fn((_id: string, _change: object): Promise<unknown> => Promise.resolve({})),
  cancel: vi.fn((_id: string) => Promise.resolve({})),
  remove: vi.fn((_id: string) => Promise.resolve()),
  connection: { snapshot: () => open, subscribe: () => () => undefined },
};

beforeEach(() => {
  vi.clearAllMocks();
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true;
  };
  HTMLDialogElement.prototype.close = function () {
    this.open = false;
    this.dispatchEvent(new Event("close"));
  };
});
afterEach(() => vi.restoreAllMocks());

function agent(id: string, more: object = {}): Agent {
  const common = { type: "fake", status: "completed", prompt: `Do ${id}`, head: 1, openQuestions: 0, cwd: "/tmp" };
  return { id, ...common, pinned: false, archived: false, createdAt: "2026-11-22T06:42:10.000Z", ...more } as unknown as Agent;
}

const agents = [agent("a"), agent("b"), agent("c", { status: "running" }), agent("d")];

function show(listed: readonly Agent[], more: { archived?: boolean; onArchived?: (archived: boolean) => void } = {}) {
  const props = { agents: listed, active: 0, loading: false, current: null, onOpen: vi.fn(), onRetry: vi.fn(), ...more };
  const view = (now: readonly Agent[]) => (
    <TokenrailProvider client={fake as unknown as Client}>
      <AgentList {...props} agents={now} />
    </TokenrailProvider>
  );
  const { rerender } = render(view(listed));
  return { props, become: (now: readonly Agent[]) => rerender(view(now)) };
}

const press = (name: string | RegExp) => act(async () => void fireEvent.click(screen.getByRole("button", { name })));
const box = (id: string) => screen.getByLabelText<HTMLInputElement>(`Select Do ${id}`);
const selected = () => agents.filter(({ id }) => box(id).checked).map(({ id }) => id);

test("pinned agents come after those that need the user, whatever they do", () => {
  show([agent("a"), agent("p", { pinned: true, status: "running" }), agent("q", { status: "running", openQuestions: 1, pinned: true })]);
  const regions = screen.getAllByRole("region").map((region) => within(region).getByRole("heading").textContent);
  expect(regions).toEqual(["Needs you", "Pinned", "Earlier"]);
  expect(screen.getByTestId("pinned").textContent).toContain("Do p");
});

test("an agent is renamed, pinned, archived and deleted from its row", async () => {
  show(agents);
  const act_ = async (name: string) => {
    await press("Actions for Do a");
    await press(name);
    expect(screen.queryByRole("dialog")).toBeNull();
  };
  await press("Actions for Do a");
  fireEvent.change(screen.getByLabelText("Name"), { target: { value: "  Ada " } });
  await press("Rename");
  expect(fake.edit).toHaveBeenLastCalledWith("a", { name: "Ada" });
  await act_("Pin");
  expect(fake.edit).toHaveBeenLastCalledWith("a", { pinned: true });
  await act_("Archive");
  expect(fake.edit).toHaveBeenLastCalledWith("a", { archived: true });
  await press("Actions for Do a");
  await press("Delete");
  expect(fake.remove).not.toHaveBeenCalled();
  await press("Delete this agent?");
  expect(fake.remove).toHaveBeenLastCalledWith("a");
});

test("what failed with one agent stays on screen", async () => {
  fake.edit.mockRejectedValueOnce(new TokenrailError("agent_deleted", "the agent has been deleted"));
  show(agents);
  await press("Actions for Do b");
  await press("Pin");
  expect(within(screen.getByRole("dialog")).getByRole("alert").textContent).toContain("The agent has been deleted.");
});

test("several agents are selected: one by one, and with Shift all in between", async () => {
  show(agents);
  await press("Select");
  fireEvent.click(box("b"));
  expect(selected()).toEqual(["b"]);
  // The running agent is first on screen, so it is not between these two.
  fireEvent.click(box("d"), { shiftKey: true });
  expect(selected()).toEqual(["b", "d"]);
  const [row] = screen.getAllByTestId("agent").filter(({ dataset }) => dataset["agentId"] === "c");
  fireEvent.click(row as HTMLElement, { shiftKey: true });
  expect(selected()).toEqual(["a", "b", "c", "d"]);
  expect(screen.getByRole("group", { name: "Selected agents" }).textContent).toContain("4 agents selected");
  await press("Stop selecting");
  expect(screen.queryByTestId("selection")).toBeNull();
});

test("while the user selects, a click on an agent selects it, and opens it again afterwards", async () => {
  const { props } = show(agents);
  const [, row] = screen.getAllByTestId("agent");
  await press("Select");
  fireEvent.click(row as HTMLElement);
  expect([selected(), props.onOpen.mock.calls]).toEqual([["a"], []]);
  await press("Stop selecting");
  fireEvent.click(row as HTMLElement);
  expect(props.onOpen).toHaveBeenCalledWith("a");
});

test("an action with several agents says with which it failed, and these stay selected", async () => {
  fake.edit.mockImplementation((id) => (id === "b" ? Promise.reject(new Error("the database is busy")) : Promise.resolve({})));
  const { become } = show(agents);
  await press("Select");
  for (const id of ["a", "b", "d"]) fireEvent.click(box(id));
  await press("Archive");
  expect(fake.edit.mock.calls.map(([id, change]) => [id, change])).toEqual(["a", "b", "d"].map((id) => [id, { archived: true }]));
  become(agents.filter(({ id }) => id === "b" || id === "c"));
  expect(screen.getByRole("alert").textContent).toContain("Cannot archive 1 of 3 agents: Do b (the database is busy)");
  expect([box("b").checked, box("c").checked]).toEqual([true, false]);
});

test("only agents that run are stopped", async () => {
  show(agents);
  await press("Select");
  fireEvent.click(box("a"));
  expect(screen.getByRole<HTMLButtonElement>("button", { name: "Stop" }).disabled).toBe(true);
  fireEvent.click(box("c"));
  await press("Stop");
  expect(fake.cancel.mock.calls.map(([id]) => id)).toEqual(["c"]);
});

test("a deletion says how many agents it deletes, and waits for a confirmation", async () => {
  show(agents);
  await press("Select");
  for (const id of ["a", "b"]) fireEvent.click(box(id));
  await press("Delete");
  expect(fake.remove).not.toHaveBeenCalled();
  await press("Delete 2 agents?");
  expect(fake.remove.mock.calls.map(([id]) => id)).toEqual(["a", "b"]);
  expect(screen.queryByTestId("selection")).toBeNull();
});

test("the archived agents are another list, from which agents come back", async () => {
  const onArchived = vi.fn();
  show([agent("a", { archived: true })], { archived: true, onArchived });
  expect(screen.getByTestId("agent-counts").textContent).toBe("1 archived");
  await press("Select");
  fireEvent.click(box("a"));
  await press("Unarchive");
  expect(fake.edit).toHaveBeenLastCalledWith("a", { archived: false });
  await press("Archived");
  expect(onArchived).toHaveBeenCalledWith(false);
});

test("a few agents are changed at the same time, and a failure stops none of the others", async () => {
  let [running, most] = [0, 0];
  const failed = await withEach(Array.from({ length: 20 }, (_, n) => agent(`${n}`)), async ({ id }) => {
    most = Math.max(most, (running += 1));
    await Promise.resolve();
    running -= 1;
    if (id === "7" || id === "3") throw new Error("no");
  });
  expect([most, failed.map((each) => each.agent.id)]).toEqual([4, ["3", "7"]]);
});

test("axe finds nothing in a selection and in the actions of an agent", async () => {
  show(agents);
  await press("Select");
  fireEvent.click(box("a"));
  const rules = { "color-contrast": { enabled: false } };
  const clean = async () => (await axe.run(document.body, { rules })).violations.map(({ id }) => id);
  const known = ["page-has-heading-one", "region"];
  expect((await clean()).filter((id) => !known.includes(id))).toEqual([]);
  await press("Stop selecting");
  await press("Actions for Do a");
  expect((await clean()).filter((id) => !known.includes(id))).toEqual([]);
});

test("an action leaves the agents selected that were chosen while it ran", async () => {
  let done = () => {};
  fake.edit.mockImplementationOnce(() => new Promise((resolve) => (done = () => resolve({}))));
  show(agents);
  await press("Select");
  fireEvent.click(box("a"));
  await press("Archive");
  expect(screen.getByRole<HTMLButtonElement>("button", { name: "Stop selecting" }).disabled).toBe(true);
  fireEvent.click(box("b"));
  await act(async () => done());
  expect(selected()).toEqual(["b"]);
});

test("an action that fails after its selection has ended says so, and selects nothing", async () => {
  let fail = () => {};
  fake.edit.mockImplementationOnce(() => new Promise((_, reject) => (fail = () => reject(new Error("no")))));
  show(agents, { onArchived: vi.fn() });
  await press("Select");
  fireEvent.click(box("a"));
  await press("Archive");
  await press("Archived");
  await act(async () => fail());
  expect(screen.getByRole("alert").textContent).toContain("Cannot archive 1 of 1 agent: Do a (no)");
  expect(screen.queryByTestId("selection")).toBeNull();
});

test("a range does not begin in a selection that has ended", async () => {
  show(agents);
  await press("Select");
  fireEvent.click(box("a"));
  await press("Stop selecting");
  expect(document.activeElement).toBe(screen.getByRole("button", { name: "Select" }));
  fireEvent.click(box("d"), { shiftKey: true });
  expect(selected()).toEqual(["d"]);
});

test("a filter that hides agents can always be changed, and says which selected agents it hides", async () => {
  const many = [...agents, agent("e")];
  const { become } = show(many, { onArchived: vi.fn() });
  await press("Select");
  for (const id of ["a", "b"]) fireEvent.click(box(id));
  const filter = () => screen.queryByLabelText<HTMLInputElement>("Filter agents");
  fireEvent.change(filter() as HTMLElement, { target: { value: "Do a" } });
  expect(screen.getByTestId("selection").textContent).toContain("2 agents selected, 1 of them hidden by the filter");
  become(agents.slice(1, 3));
  expect(filter()?.value).toBe("Do a");
  await press("Archived");
  expect(filter()).toBeNull();
});

test("the dialog of an agent stays while another tab takes the agent out of the list", async () => {
  const { become } = show(agents);
  await press("Actions for Do a");
  fireEvent.change(screen.getByLabelText("Name"), { target: { value: "Ada" } });
  become(agents.slice(1));
  expect(screen.getByLabelText<HTMLInputElement>("Name").value).toBe("Ada");
  let done = () => {};
  fake.edit.mockImplementationOnce(() => new Promise((resolve) => (done = () => resolve({}))));
  await press("Rename");
  await press("Rename");
  await act(async () => done());
  expect(fake.edit).toHaveBeenCalledOnce();
  become(agents);
  expect(screen.queryByRole("dialog")).toBeNull();
});

test("a name that is typed in the dialog stays if the session ends, and not if the dialog is closed", async () => {
  const typed = async () => {
    await press("Actions for Do a");
    return screen.getByLabelText<HTMLInputElement>("Name").value;
  };
  show(agents);
  await typed();
  fireEvent.change(screen.getByLabelText("Name"), { target: { value: "Grac" } });
  cleanup();
  show(agents);
  expect(await typed()).toBe("Grac");
  await press("Close");
  expect(await typed()).toBe("");
});
