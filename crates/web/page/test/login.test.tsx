import { act, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { AskForToken } from "../src/app/AskForToken.tsx";
import { EarlyAnswers, firstAgents } from "../src/app/early.ts";
import { LogOutButton } from "../src/app/LogOut.tsx";
import { open } from "../src/view.tsx";

/** What the server answers to a request, such as `GET /api/agents`. `undefined`: it cannot be reached. */
let answer: (request: string) => Response | undefined;
const asked: string[] = [];
let sockets: Socket[] = [];

class Socket {
  readyState = 0;
  onopen?: () => void;
  onclose?: (event: { code: number }) => void;

  send(): void {}
  close(): void {
    this.readyState = 3;
  }
}

const list = () => Response.json([]);

beforeEach(() => {
  answer = list;
  asked.length = 0;
  // A page of an earlier test may still connect for a moment after it was removed. That is not a socket of this test.
  const own: Socket[] = [];
  sockets = own;
  const Counted = class extends Socket {
    constructor() {
      super();
      own.push(this);
    }
  };
  vi.stubGlobal("WebSocket", Counted);
  vi.stubGlobal("fetch", async (input: string, init?: RequestInit) => {
    const request = `${init?.method ?? "GET"} ${new URL(input, location.origin).pathname}`;
    asked.push(request);
    const response = answer(request);
    if (!response) throw new TypeError("no network");
    return response;
  });
});

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  sessionStorage.clear();
  document.body.innerHTML = "";
});

function begin() {
  document.body.innerHTML = '<div id="root"></div>';
  const early = new EarlyAnswers("");
  return act(() => open({ access: { token: "" }, agentId: null, answer: early.ask(firstAgents), fetch: early.fetch }));
}

async function showPage() {
  const root = await begin();
  await vi.waitFor(() => expect(sockets).toHaveLength(1));
  return root;
}

const refused = () => new Response(null, { status: 401 });
const form = () => screen.queryByTestId("ask-for-token");

async function logIn(secret: string) {
  fireEvent.change(screen.getByLabelText("Link or token"), { target: { value: secret } });
  await act(async () => fireEvent.submit(screen.getByTestId("ask-for-token")));
}

test("a login in an open page is not ended by a late response to an earlier request", async () => {
  const root = await showPage();
  await act(async () => sockets[0]?.onopen?.());
  let late = (_: Response) => {};
  const answered = vi.fn(() => new Promise<Response>((resolve) => (late = resolve)));
  vi.stubGlobal("fetch", (_: string, init?: RequestInit) =>
    init?.method === "POST" ? Promise.resolve(new Response(null, { status: 204 })) : answered(),
  );
  await act(async () => sockets[0]?.onclose?.({ code: 1006 }));
  expect(answered).toHaveBeenCalled();
  location.hash = "#token=secret";
  await act(async () => void window.dispatchEvent(new Event("hashchange")));
  await vi.waitFor(() => expect(location.hash).toBe(""));
  await act(async () => late(refused()));
  expect(form()).toBeNull();
  act(() => root?.unmount());
});

test("a session that ends while the page is open leads to the login, and the login back to the page", async () => {
  const root = await showPage();
  await act(async () => sockets[0]?.onopen?.());
  expect(screen.getByTestId("new-agent")).toBeTruthy();
  answer = refused;
  // The browser does not say why a WebSocket was refused.
  await act(async () => sockets[0]?.onclose?.({ code: 1006 }));
  await vi.waitFor(() => expect(form()?.querySelector("h1")?.textContent).toBe("Log in"));
  answer = (request) => (request === "POST /api/session" ? new Response(null, { status: 204 }) : list());
  await logIn("secret");
  expect(form()).toBeNull();
  expect(screen.getByTestId("new-agent")).toBeTruthy();
  act(() => root?.unmount());
});

test("a server that cannot be reached does not lead to the login", async () => {
  const root = await showPage();
  answer = () => undefined;
  await act(async () => sockets[0]?.onclose?.({ code: 1006 }));
  await vi.waitFor(() => expect(asked.filter((request) => request === "GET /api/agents").length).toBeGreaterThan(1));
  expect(form()).toBeNull();
  act(() => root?.unmount());
});

test("a login during an outage says that it failed, keeps the text, and can be tried again", async () => {
  answer = refused;
  const root = await begin();
  expect(form()).toBeTruthy();
  for (const status of [undefined, 502, 503]) {
    answer = () => (status ? new Response(null, { status }) : undefined);
    await logIn("secret");
    expect(form()?.querySelector("h1")?.textContent).toBe("Log in");
    expect(screen.getByRole("alert").textContent).toContain("The server cannot be reached. Try again.");
    expect(screen.getByLabelText<HTMLInputElement>("Link or token").value).toBe("secret");
  }
  answer = refused;
  await logIn("secret");
  expect([form()?.querySelector("h1")?.textContent, screen.queryByRole("alert")]).toEqual(["Wrong token", null]);
  // The response to the request that was sent before the login is not used after it.
  answer = (request) => (request === "POST /api/session" ? new Response(null, { status: 204 }) : list());
  await logIn("secret");
  await vi.waitFor(() => expect(sockets.length).toBeGreaterThan(0));
  await vi.waitFor(() => expect(screen.getByTestId("agent-counts").textContent).toBe("0 in the list"));
  expect(form()).toBeNull();
  act(() => root?.unmount());
});

test("while a login runs, it cannot be sent again", async () => {
  let done = (_: "failed" | undefined) => {};
  const onLogin = vi.fn(() => new Promise<"failed" | undefined>((resolve) => (done = resolve)));
  render(<AskForToken door="asked" onLogin={onLogin} />);
  await logIn("secret");
  await logIn("secret");
  expect(onLogin).toHaveBeenCalledOnce();
  expect(screen.getByRole<HTMLButtonElement>("button").disabled).toBe(true);
  await act(async () => done("failed"));
  expect(screen.getByRole<HTMLButtonElement>("button").disabled).toBe(false);
});

test.each([undefined, 503])("a logout that fails says so, and the user stays logged in (status %s)", async (status) => {
  answer = () => (status ? new Response(null, { status }) : undefined);
  const onDone = vi.fn();
  render(<LogOutButton onDone={onDone} />);
  await act(async () => fireEvent.click(screen.getByTestId("log-out")));
  expect(screen.getByRole("alert").textContent).toBe("Cannot log out, because the server cannot be reached or has refused the request. Try again later.");
  expect(onDone).not.toHaveBeenCalled();
  answer = () => new Response(null, { status: 204 });
  await act(async () => fireEvent.click(screen.getByTestId("log-out")));
  expect(onDone).toHaveBeenCalledOnce();
  expect(screen.queryByRole("alert")).toBeNull();
});
