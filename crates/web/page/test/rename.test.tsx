import type { Agent, Client } from "@tokenrail/client";
import { TokenrailProvider } from "@tokenrail/client/react";
import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { beforeEach, expect, test, vi } from "vitest";

import { askTo } from "../src/conversation/orders.ts";
import { Title } from "../src/conversation/Title.tsx";

const edit = vi.fn((_id: string, _change: object): Promise<unknown> => Promise.resolve({}));
const onFailure = vi.fn();
beforeEach(() => {
  vi.clearAllMocks();
  sessionStorage.clear();
});

const agent = { id: "a", prompt: "Do it", name: "Ada" } as unknown as Agent;

function show(of: Agent = agent): void {
  render(
    <TokenrailProvider client={{ edit } as unknown as Client}>
      <Title agent={of} onFailure={onFailure} />
    </TokenrailProvider>,
  );
}

const field = () => screen.getByTestId<HTMLInputElement>("name");
const begin = () => fireEvent.click(screen.getByRole("button", { name: "Ada" }));
const write = (value: string) => fireEvent.change(field(), { target: { value } });

test("a click on the title lets the user type another name, and Enter saves it", async () => {
  show();
  begin();
  expect([document.activeElement, field().value]).toEqual([field(), "Ada"]);
  write(" Grace ");
  await act(async () => void fireEvent.submit(field()));
  expect(edit.mock.calls).toEqual([["a", { name: "Grace" }]]);
  expect(screen.queryByTestId("name")).toBeNull();
});

test("Escape keeps the old name, and leaving the field saves the new one", async () => {
  show();
  begin();
  write("Grace");
  await act(async () => void fireEvent.keyDown(field(), { key: "Escape" }));
  expect([edit.mock.calls, screen.queryByTestId("name")]).toEqual([[], null]);
  begin();
  write("");
  await act(async () => void fireEvent.blur(field()));
  expect(edit.mock.calls).toEqual([["a", { name: null }]]);
});

test("an unchanged name is not sent, and a failure is told", async () => {
  show();
  begin();
  await act(async () => void fireEvent.submit(field()));
  expect(edit).not.toHaveBeenCalled();
  edit.mockRejectedValueOnce(new Error("no"));
  begin();
  write("Grace");
  await act(async () => void fireEvent.submit(field()));
  expect(onFailure).toHaveBeenLastCalledWith(new Error("no"));
  // The name stays, so that the user can try again.
  expect([field().value, field().readOnly]).toEqual(["Grace", false]);
  await act(async () => void fireEvent.submit(field()));
  expect(edit).toHaveBeenCalledTimes(2);
});

test.each(["Enter", "Escape"])("after %s, the title has the focus, so that no letter is lost to a shortcut", async (key) => {
  show();
  begin();
  await act(async () => void (key === "Enter" ? fireEvent.submit(field()) : fireEvent.keyDown(field(), { key })));
  expect(document.activeElement).toBe(screen.getByTestId("rename"));
});

test("something else can ask to rename the agent, unless it is deleted", async () => {
  vi.useFakeTimers();
  show();
  askTo("rename");
  await act(() => vi.advanceTimersByTimeAsync(0));
  expect(field()).toBeTruthy();
  vi.useRealTimers();
});

test("the title of a deleted agent is only a text", () => {
  show({ ...agent, deletedAt: "2026-11-22T06:42:10.000Z" });
  expect(screen.getByRole("heading").textContent).toBe("Ada");
  expect(screen.queryByRole("button")).toBeNull();
});

test("a name that is being typed stays if the session ends, and goes when it is saved", async () => {
  show();
  begin();
  write("Grac");
  edit.mockRejectedValueOnce(new Error("log in again"));
  await act(async () => void fireEvent.submit(field()));
  cleanup();
  show();
  expect(field().value).toBe("Grac");
  write("Grace");
  await act(async () => void fireEvent.submit(field()));
  cleanup();
  show();
  expect(screen.queryByTestId("name")).toBeNull();
});
