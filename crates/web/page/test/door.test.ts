import { type Client, TokenrailError } from "@tokenrail/client";
import { beforeEach, expect, test } from "vitest";

import { knock } from "../src/app/door.ts";
import { agentIn } from "../src/app/address.ts";
import { keepToken, takeToken, tokenIn } from "../src/app/token.ts";

beforeEach(() => sessionStorage.clear());

test("the token leaves the address bar, and stays for a reload", () => {
  history.replaceState(null, "", "/agents/0199#token=secret");
  keepToken(takeToken());
  expect(location.href).not.toContain("secret");
  expect(location.pathname).toBe("/agents/0199");
  expect(takeToken()).toBe("secret");
});

test("a token is found in whatever was pasted", () => {
  for (const pasted of ["secret", " secret\n", "http://127.0.0.1:7117/#token=secret", "#token=secret", "token=secret"]) {
    expect(tokenIn(pasted)).toBe("secret");
  }
});

test("an address names an agent or none", () => {
  expect(agentIn("/agents/0199-ab")).toBe("0199-ab");
  expect(agentIn("/agents/0199-ab/")).toBe("0199-ab");
  for (const path of ["/", "/agents/", "/agents/a/b", "/agents/<x>"]) expect(agentIn(path)).toBeNull();
});

test("only a refused token closes the door", async () => {
  const server = (answer: () => Promise<never[]>) => ({ activeAgents: answer }) as unknown as Client;
  const refused = server(() => Promise.reject(new TokenrailError("unauthenticated", "no")));
  const away = server(() => Promise.reject(new TokenrailError("network", "away")));
  expect(await knock(refused, "")).toBe("asked");
  expect(await knock(refused, "old")).toBe("wrong");
  expect(await knock(away, "good")).toBe("open");
  expect(await knock(server(() => Promise.resolve([])), "")).toBe("open");
});
