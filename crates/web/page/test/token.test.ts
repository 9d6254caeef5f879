import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { givenLogin, keptAccess, logIn, loginPasted, send } from "../src/app/token.ts";

const sent: Request[] = [];

/** A server that answers with this status, or cannot be reached. */
function serve(status?: number): void {
  vi.stubGlobal("fetch", async (input: string, init?: RequestInit) => {
    sent.push(new Request(new URL(input, location.origin), init));
    if (status === undefined) throw new TypeError("no network");
    return new Response(null, { status });
  });
}

beforeEach(() => serve(204));

afterEach(() => {
  sent.length = 0;
  vi.unstubAllGlobals();
  sessionStorage.clear();
  history.replaceState(null, "", "/");
});

async function follow(link: string) {
  history.replaceState(null, "", link);
  const login = givenLogin();
  return login && { access: await logIn(login), hash: location.hash, path: location.pathname };
}

test("a login code becomes a session, and leaves the address bar", async () => {
  expect(await follow("/agents/a#code=c0de")).toEqual({ access: { token: "" }, hash: "", path: "/agents/a" });
  expect([sent[0]?.method, sent[0]?.url, await sent[0]?.json()]).toEqual(["POST", `${location.origin}/api/session`, { code: "c0de" }]);
});

test("a token becomes a session, and is kept nowhere", async () => {
  sessionStorage.setItem("tokenrail-token", "old");
  expect(await follow("/#token=secret")).toEqual({ access: { token: "" }, hash: "", path: "/" });
  expect(sent[0]?.headers.get("Authorization")).toBe("Bearer secret");
  expect([sessionStorage.length, localStorage.length, document.cookie]).toEqual([0, 0, ""]);
});

test("a page of another origin can have no session, and keeps the token for its tab", async () => {
  serve(403);
  expect((await follow("/#token=secret"))?.access).toEqual({ token: "secret" });
  expect(keptAccess()).toEqual({ token: "secret" });
  expect((await follow("/#code=c0de"))?.access).toEqual({ token: "secret", refused: "code" });
});

test("what the server refuses is told, and not kept", async () => {
  for (const status of [401, 429]) {
    serve(status);
    expect(await follow("/#code=spent")).toEqual({ access: { token: "", refused: "code" }, hash: "", path: "/" });
    expect((await follow("/#token=wrong"))?.access).toEqual({ token: "", refused: "token" });
  }
  expect(sessionStorage.length).toBe(0);
});

test("a login stays in the address bar while the server cannot be reached", async () => {
  for (const status of [undefined, 502, 503]) {
    serve(status);
    const access = { token: "", failed: true };
    expect(await follow("/#code=c0de")).toEqual({ access, hash: "#code=c0de", path: "/" });
  }
});

test("another fragment is no login, and stays", () => {
  history.replaceState(null, "", "/#main");
  expect([givenLogin(), location.hash]).toEqual([undefined, "#main"]);
});

test("a login is found in whatever was pasted", () => {
  const token = { kind: "token", secret: "secret" };
  for (const pasted of ["secret", " secret\n", "http://127.0.0.1:7117/#token=secret", "#token=secret", "token=secret"]) {
    expect(loginPasted(pasted)).toEqual(token);
  }
  expect(loginPasted("http://127.0.0.1:7117/agents/a#code=c0de")).toEqual({ kind: "code", secret: "c0de" });
  expect(loginPasted("  ")).toBeUndefined();
});

test("a change shows that a page of the server makes it, and a reading needs no proof", async () => {
  const key = { "Idempotency-Key": "k" };
  await send("/api/agents", { method: "POST", headers: key, body: "{}" });
  await send("/api/agents/a", { method: "DELETE" });
  await send("/api/agents");
  expect(sent.map(({ headers }) => headers.get("Tokenrail-Csrf"))).toEqual(["1", "1", null]);
  expect(sent[0]?.headers.get("Idempotency-Key")).toBe("k");
});
