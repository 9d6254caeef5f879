import { TokenrailError } from "@tokenrail/client";
import { TokenrailProvider } from "@tokenrail/client/react";
import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { LogOutButton } from "../src/app/LogOut.tsx";
import { Composer } from "../src/conversation/Composer.tsx";
import { Outbox, useOutbox } from "../src/conversation/outbox.ts";
import { FakeClient, away } from "./fake-client.ts";

const withdraw = vi.fn((_id: string, _turn: number): Promise<unknown> => Promise.resolve({}));
let fake: FakeClient;
beforeEach(() => {
  fake = Object.assign(new FakeClient(), { withdraw });
  withdraw.mockReset().mockResolvedValue({});
});
afterEach(() => {
  vi.unstubAllGlobals();
  sessionStorage.clear();
});

function Page({ agentId }: { readonly agentId: string }) {
  const outbox = useOutbox();
  return <Composer agent={{ ...fake.agentNow, id: agentId }} send={(content, images) => outbox.send(agentId, content, images)} />;
}

const view = (agentId: string) => (
  <TokenrailProvider client={fake.client}>
    <Page key={agentId} agentId={agentId} />
  </TokenrailProvider>
);
const show = (agentId = "a") => act(async () => render(view(agentId)));
const field = () => screen.getByLabelText<HTMLTextAreaElement>("Message to the agent");
const write = (value: string) => fireEvent.change(field(), { target: { value } });
const send = () => act(async () => void fireEvent.submit(screen.getByTestId("composer")));
const press = (id: string) => act(async () => void fireEvent.click(screen.getByTestId(id)));

async function showQueue(): Promise<void> {
  fake.agentNow = { ...fake.agentNow, queued: 1 };
  fake.turns.mockResolvedValue([{ agentId: "a", number: 2, status: "queued", prompt: "no, do 1 first" }] as never);
  await show();
}

test("what was written stays when another agent is shown, or the page is loaded again", async () => {
  const { rerender } = await show("a");
  write("a half sentence");
  rerender(view("b"));
  expect(field().value).toBe("");
  write("another");
  cleanup();
  await show("a");
  expect(field().value).toBe("a half sentence");
});

test("a queued message that is edited has the caret, so that the next keys are text", async () => {
  await showQueue();
  // Each line of the queue has such a button, so the name says which message it edits.
  expect(screen.getByRole("button", { name: "Edit: no, do 1 first" })).toBe(screen.getByTestId("edit-queued"));
  await press("edit-queued");
  expect([document.activeElement, field().value]).toEqual([field(), "no, do 1 first"]);
  expect(field().selectionStart).toBe(14);
  expect(withdraw).toHaveBeenCalledWith("a", 2);
});

test("a queued message is not lost if it is not known whether it was withdrawn", async () => {
  withdraw.mockRejectedValue(away());
  await showQueue();
  await press("edit-queued");
  expect(field().value).toBe("no, do 1 first");
  expect(screen.getByRole("alert").textContent).toContain("Cannot reach the server.");
});

test("a message is not sent again as a part of the next one", async () => {
  let answer = () => {};
  fake.send.mockImplementationOnce(() => new Promise((resolve) => (answer = () => resolve({ turn: 2, queued: true }))));
  await show();
  write("hello");
  await send();
  expect(field().value).toBe("");
  write("and more");
  await act(async () => answer());
  await send();
  expect(fake.send.mock.calls.map(([, { content }]) => content)).toEqual(["hello", "and more"]);
});

test("a message that the server refuses comes back in front of what was written meanwhile", async () => {
  let refuse = () => {};
  fake.send.mockImplementationOnce(() => new Promise((_, reject) => (refuse = () => reject(new Error("the queue is full")))));
  await show();
  write("hello");
  await send();
  write("more");
  await act(async () => refuse());
  expect(field().value).toBe("hello\nmore");
  expect(screen.getByRole("alert").textContent).toContain("The queue is full.");
});

const loggedOut = () => new TokenrailError("unauthorized" as never, "log in first", { status: 401 });

test("a message that is refused because the session has ended is kept, and sent after the next login", async () => {
  const outbox = new Outbox(fake.client);
  fake.send.mockRejectedValue(loggedOut());
  await outbox.send("a", "a long message");
  outbox.sendAll();
  await act(async () => {});
  expect(outbox.get("a")).toMatchObject({ content: "a long message" });
  expect(outbox.get("a")?.refusal).toBeUndefined();
  fake.send.mockResolvedValue({ turn: 2, queued: true });
  outbox.sendAll();
  await act(async () => {});
  expect(outbox.get("a")).toBeUndefined();
  expect(new Set(fake.send.mock.calls.map(([, , { idempotencyKey }]) => idempotencyKey)).size).toBe(1);
});

test("a logout forgets what the tab has not sent", async () => {
  vi.stubGlobal("fetch", async () => new Response(null, { status: 204 }));
  await show();
  write("secret");
  sessionStorage.setItem("tokenrail-unsent", "[]");
  sessionStorage.setItem("other", "stays");
  const onDone = vi.fn();
  render(<LogOutButton onDone={onDone} />);
  await press("log-out");
  expect(onDone).toHaveBeenCalledOnce();
  expect(Object.keys(sessionStorage)).toEqual(["other"]);
});
