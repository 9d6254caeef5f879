import { type Agent, type AgentType, type Client, type Launch, TokenrailError } from "@tokenrail/client";
import { TokenrailProvider } from "@tokenrail/client/react";
import { act, cleanup, fireEvent, render, screen, within } from "@testing-library/react";
import { beforeEach, expect, test, vi } from "vitest";

import { ImportButton } from "../src/agents/ImportButton.tsx";
import { Composer } from "../src/conversation/Composer.tsx";
import { prepareAgain } from "../src/launch/again.ts";
import { LaunchForm } from "../src/launch/LaunchForm.tsx";
import { recent, remember } from "../src/launch/recent.ts";
import { FakeClient, away } from "./fake-client.ts";

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
});

const type = (name: string, more: object = {}) =>
  ({ type: name, runner: "process", can: {}, available: true, default: false, ...more }) as unknown as AgentType;
const types = [type("claude"), type("codex", { default: true }), type("gone", { available: false })];

const launch = vi.fn((_launch: Launch, _options: { idempotencyKey: string }) => Promise.resolve({ id: "a" }));
const onLaunched = vi.fn();

function show() {
  cleanup();
  launch.mockClear();
  const client = Object.assign(new FakeClient(), { launch }) as unknown as Client;
  render(
    <TokenrailProvider client={client}>
      <LaunchForm client={client} types={types} onLaunched={onLaunched} />
    </TokenrailProvider>,
  );
}

const field = (label: string | RegExp) => screen.getByLabelText<HTMLInputElement>(label);
const fill = (label: string | RegExp, value: string) => fireEvent.change(field(label), { target: { value } });
const submit = () => act(async () => fireEvent.submit(screen.getByTestId("launch-form")));
const offered = (label: RegExp) => [...(field(label).list?.options ?? [])].map(({ value }) => value);

test("the folder, the model and the type of a launch are offered the next time", async () => {
  show();
  expect([field("Type").value, offered(/Folder/), offered(/Model/)]).toEqual(["codex", [], []]);
  fill("Prompt", "Fix it");
  fill("Type", "claude");
  fill(/Folder/, "/src/shop");
  fill(/Model/, "opus");
  await submit();
  expect(launch.mock.calls[0]?.[0]).toEqual({ prompt: "Fix it", type: "claude", cwd: "/src/shop", model: "opus" });
  show();
  expect([field("Type").value, offered(/Folder/), offered(/Model/)]).toEqual(["claude", ["/src/shop"], ["opus"]]);
});

test("the tooltip of the type says in words what its agents do", () => {
  show();
  expect(field("Type").title).toBe("Runs a program");
});

test("a type that is not available any more is not chosen", () => {
  remember("type", "gone");
  show();
  expect(field("Type").value).toBe("codex");
});

test("few values are remembered, newest first and each once, whatever the storage contains", () => {
  for (let number = 0; number < 20; number++) remember("cwd", `/${number}`);
  remember("cwd", "/15");
  remember("cwd", "x".repeat(10_000));
  expect(recent("cwd")).toEqual(["/15", "/19", "/18", "/17", "/16", "/14", "/13", "/12"]);
  for (const nonsense of ["{", "{}", "[1, null]"]) {
    localStorage.setItem("tokenrail-recent-cwd", nonsense);
    expect(recent("cwd")).toEqual([]);
  }
});

test("a launch without a response is tried again with the same key, and one that was refused with another", async () => {
  show();
  fill("Prompt", "Fix it");
  const key = async (failure: Error) => {
    launch.mockRejectedValueOnce(failure);
    await submit();
    return launch.mock.lastCall?.[1].idempotencyKey;
  };
  const first = await key(away());
  expect(await key(away())).toBe(first);
  expect(await key(new TokenrailError("validation_failed", "cwd: not allowed"))).toBe(first);
  const later = await key(away());
  expect(later).not.toBe(first);
  fill("Prompt", "Fix it all");
  expect(await key(away())).not.toBe(later);
});

function compose(agent: Partial<Agent>) {
  const fake = new FakeClient();
  render(
    <TokenrailProvider client={fake.client}>
      <Composer agent={{ ...fake.agentNow, ...agent }} send={() => Promise.resolve()} />
    </TokenrailProvider>,
  );
  return fake;
}

test("a running turn can be stopped from the composer, and no other", async () => {
  const fake = compose({ status: "running", queued: 1 });
  const stop = screen.getByRole("button", { name: "Stop" });
  expect(stop.title).toBe("Stop this turn, and withdraw the queued messages. The turn ends as “cancelled”.");
  fake.cancel.mockRejectedValueOnce(away());
  await act(async () => fireEvent.click(stop));
  expect(screen.getByRole("alert").textContent).toContain("Cannot reach the server.");
  await act(async () => fireEvent.click(stop));
  expect([screen.queryByRole("alert"), fake.cancel.mock.calls]).toEqual([null, [["a"], ["a"]]]);
  cleanup();
  compose({ status: "completed" });
  expect(screen.queryByRole("button", { name: "Stop" })).toBeNull();
});

test("the composer has one button: it stops the agent, or sends what is written", async () => {
  const fake = compose({ status: "running" });
  const names = () => screen.getAllByRole("button").map((button) => button.getAttribute("aria-label"));
  expect(names()).toEqual(["Stop"]);
  fireEvent.change(screen.getByLabelText("Message to the agent"), { target: { value: "More" } });
  expect(names()).toEqual(["Add to the queue"]);
  const send = screen.getByTestId("send");
  send.focus();
  await act(async () => fireEvent.click(send));
  expect(names()).toEqual(["Stop"]);
  expect(document.activeElement).toBe(screen.getByLabelText("Message to the agent"));
  await act(async () => fireEvent.click(screen.getByTestId("stop"), { detail: 2 }));
  expect(fake.cancel).not.toHaveBeenCalled();
});

test("a queued message is sent now by stopping only the turn that runs before it", async () => {
  const turn = (number: number, status: string) => ({ agentId: "a", number, status, prompt: `Message ${number}` });
  const fake = new FakeClient();
  fake.turns.mockResolvedValue([turn(1, "completed"), turn(2, "running"), turn(3, "queued"), turn(4, "queued")] as never);
  const composer = (agent: Partial<Agent>) => (
    <TokenrailProvider client={fake.client}>
      <Composer agent={{ ...fake.agentNow, status: "running", ...agent }} send={() => Promise.resolve()} />
    </TokenrailProvider>
  );
  const view = render(composer({ queued: 2 }));
  const now = await screen.findAllByRole("button", { name: /^Send now/ });
  expect(now.map((button) => button.getAttribute("aria-label"))).toEqual(["Send now: Message 3"]);
  fake.cancel.mockRejectedValueOnce(away());
  await act(async () => fireEvent.click(now[0] as HTMLElement));
  expect(screen.getByRole("alert").textContent).toContain("Cannot reach the server.");
  fake.cancel.mockClear();
  await act(async () => fireEvent.click(screen.getByRole("button", { name: "Send now: Message 3" })));
  expect(fake.cancel.mock.calls).toEqual([["a", { turn: 2 }]]);
  expect(fake.send).not.toHaveBeenCalled();
  // The running turn may take its time to stop.
  expect([screen.queryByRole("alert"), screen.getByRole("status").textContent]).toEqual([null, "Stopping the turn…"]);
  const isDisabled = (name: string) => screen.getByRole<HTMLButtonElement>("button", { name }).disabled;
  expect(["Edit: Message 3", "Withdraw: Message 3", "Edit: Message 4"].map(isDisabled)).toEqual([true, true, false]);
  fake.turns.mockResolvedValue([turn(2, "cancelled"), turn(3, "running"), turn(4, "queued")] as never);
  view.rerender(composer({ turn: 3, queued: 1 }));
  await screen.findByRole("button", { name: "Send now: Message 4" });
  expect(screen.queryByRole("status")).toBeNull();

  // The message's own turn has begun before the click.
  view.unmount();
  fake.cancel.mockClear();
  fake.turns.mockResolvedValueOnce([turn(2, "running"), turn(3, "queued")] as never);
  fake.turns.mockResolvedValue([turn(2, "completed"), turn(3, "running")] as never);
  render(composer({ queued: 1 }));
  const late = await screen.findByRole("button", { name: "Send now: Message 3" });
  await act(async () => fireEvent.click(late));
  expect(fake.cancel).not.toHaveBeenCalled();
});

test("the prompt stays if the session ends before the launch, and goes with the launch", async () => {
  show();
  fill("Prompt", "Fix it");
  show();
  expect(field("Prompt").value).toBe("Fix it");
  await submit();
  show();
  expect(field("Prompt").value).toBe("");
});

test("an agent is launched again with the same prompt, type, model and folder, which the user can change", async () => {
  const full = { ...new FakeClient().agentNow, prompt: "Fix all of it", type: "claude", model: "opus", cwd: "/src/shop" };
  const client = { agent: vi.fn(() => Promise.resolve(full)) } as unknown as Client;
  await prepareAgain(client, { ...full, prompt: "Fix all", truncated: ["prompt"] } as Agent);
  show();
  expect([field("Prompt").value, field("Type").value, field(/Model/).value, field(/Folder/).value]).toEqual([
    ...["Fix all of it", "claude", "opus", "/src/shop"],
  ]);
  fill(/Model/, "haiku");
  await submit();
  expect(launch.mock.calls[0]?.[0]).toEqual({ prompt: "Fix all of it", type: "claude", model: "haiku", cwd: "/src/shop" });
  show();
  expect([field("Prompt").value, field(/Model/).value, field(/Folder/).value]).toEqual(["", "", ""]);
  // The folder of its own is not for another agent.
  await prepareAgain(client, { ...full, id: "0193", cwd: "/data/agents/0193/work" } as Agent);
  show();
  expect(field(/Folder/).value).toBe("");
});

test("a folder that is not allowed is told at its field, with the command that allows it", async () => {
  show();
  fill("Prompt", "Fix it");
  fill(/Folder/, "/srv/my shop");
  launch.mockRejectedValueOnce(new TokenrailError("cwd_not_allowed", "cwd: not allowed"));
  await submit();
  const [alert, ...others] = screen.getAllByRole("alert");
  expect([alert?.textContent, others]).toEqual([expect.stringContaining("run this on the server: tokenrail allow '/srv/my shop'"), []]);
  const cwd = field(/Folder/);
  expect([document.activeElement, cwd.getAttribute("aria-invalid"), cwd.getAttribute("aria-describedby")]).toEqual([cwd, "true", alert?.id]);
  fill(/Folder/, "/srv/other");
  expect(screen.queryAllByRole("alert")).toEqual([]);
});

test("an exported file is imported, and can be chosen again after a failure", async () => {
  const onImported = vi.fn();
  let done = (_: { id: string }) => {};
  const importAgent = vi.fn((_: Blob) => new Promise<{ id: string }>((resolve) => (done = resolve)));
  importAgent.mockRejectedValueOnce(new Error("this is not an exported agent"));
  const client = Object.assign(new FakeClient(), { importAgent }) as unknown as Client;
  render(
    <TokenrailProvider client={client}>
      <ImportButton onImported={onImported} />
    </TokenrailProvider>,
  );
  const file = new File(["{}"], "agent.json");
  const choose = () => act(async () => fireEvent.change(field(/Import an exported agent/), { target: { files: [file] } }));
  await choose();
  expect(screen.getByRole("alert").textContent).toContain("This is not an exported agent.");
  await choose();
  expect([screen.queryByRole("alert"), field("Importing…").disabled, onImported.mock.calls]).toEqual([null, true, []]);
  await act(async () => done({ id: "copy" }));
  expect([importAgent.mock.calls, onImported.mock.calls]).toEqual([[[file], [file]], [["copy"]]]);
});

test("types that are not available come last, and say why", () => {
  const gone = type("api", { available: false, problem: "no key: run `tokenrail login api`" });
  const client = new FakeClient().client;
  render(
    <TokenrailProvider client={client}>
      <LaunchForm client={client} types={[gone, type("claude"), type("codex")]} onLaunched={onLaunched} />
    </TokenrailProvider>,
  );
  const options = [...screen.getByLabelText<HTMLSelectElement>("Type").options].map(({ value }) => value);
  expect(options).toEqual(["claude", "codex", "api"]);
  expect(screen.getByText(/No key: run/).textContent).toBe("api: No key: run `tokenrail login api`.");
  expect(document.querySelector("details")?.open).toBe(true);
});

test("a prompt is saved under a name, and fills the form later, in this browser", () => {
  show();
  expect(screen.queryByRole("group", { name: "Saved prompts" })).toBeNull();
  const save = (name: string, prompt: string) => {
    fill("Prompt", prompt);
    fireEvent.click(screen.getByTestId("save-prompt"));
    fill("Name of the saved prompt", name);
    fireEvent.keyDown(field("Name of the saved prompt"), { key: "Enter" });
  };
  save("Review", "Review the last commit");
  save("Docs", "Check the docs");
  save("Review", "Review the branch");
  sessionStorage.clear();
  show();
  const saved = () => within(screen.getByRole("group", { name: "Saved prompts" })).getAllByRole("button").map((button) => button.textContent);
  expect(saved()).toEqual(["Docs", "", "Review", ""]);
  fireEvent.click(screen.getByRole("button", { name: "Review" }));
  expect(field("Prompt").value).toBe("Review the branch");
  fireEvent.click(screen.getByRole("button", { name: "Delete the saved prompt Docs" }));
  expect(saved()).toEqual(["Review", "", "Save this prompt…"]);
  for (let number = 0; number < 30; number++) save(`p${number}`, `Prompt ${number}`);
  expect(saved().filter(Boolean)).toHaveLength(21);
  fill("Prompt", "x".repeat(10_001));
  expect(screen.queryByTestId("save-prompt")).toBeNull();
});
