import { afterEach, expect, test, vi } from "vitest";

import { givenToken, keepToken, takeToken } from "../src/app/token.ts";

afterEach(() => {
  vi.restoreAllMocks();
  sessionStorage.clear();
  history.replaceState(null, "", "/");
});

test("whoever loads the page again at any moment has the token here or in the address", () => {
  history.replaceState(null, "", "/agents/a#token=secret");
  expect(takeToken()).toBe("secret");
  expect(location.hash).toBe("#token=secret");
  const replace = history.replaceState.bind(history);
  vi.spyOn(history, "replaceState").mockImplementation((...to) => {
    expect(sessionStorage.getItem("tokenrail-token")).toBe("secret");
    replace(...to);
  });
  keepToken("secret");
  expect(location.href).toMatch(/\/agents\/a$/);
  expect(takeToken()).toBe("secret");
});

test("another fragment is no token, and stays", () => {
  history.replaceState(null, "", "/#main");
  expect([givenToken(), takeToken()]).toEqual([undefined, ""]);
  keepToken("pasted");
  expect([location.hash, takeToken()]).toEqual(["#main", "pasted"]);
});
