import { createClient } from "@tokenrail/client";
import { preloadAgentMessages, TokenrailProvider, useAgents } from "@tokenrail/client/react";
import { renderHook, waitFor } from "@testing-library/react";
import { createElement, type ReactNode } from "react";
import { afterEach, expect, test, vi } from "vitest";

import { EarlyAnswers, firstAgents } from "../src/app/early.ts";

const id = "0199-a";
const asked: string[] = [];

function serve(): void {
  vi.stubGlobal("fetch", (input: string, init?: RequestInit) => {
    expect(new Headers(init?.headers).get("Authorization")).toBe("Bearer secret");
    const { pathname, search } = new URL(input, location.origin);
    asked.push(pathname + search);
    if (pathname === "/api/agents") return Promise.resolve(Response.json([]));
    if (pathname.endsWith("/messages")) return Promise.resolve(Response.json([], { headers: { "Tokenrail-Since": "0" } }));
    return Promise.resolve(Response.json({ id, agentId: id, status: "completed", head: 0 }));
  });
}

afterEach(() => {
  asked.length = 0;
  vi.unstubAllGlobals();
});

test("what was asked for early is what the client library asks for, and is not asked for again", async () => {
  serve();
  const early = new EarlyAnswers("secret");
  void early.ask(`/api/agents/${id}`);
  void early.ask(`/api/agents/${id}/messages?since=0&last=60&packed=true`);
  const client = createClient({ token: "secret", fetch: early.fetch });
  const { agent, messages } = preloadAgentMessages(client, id);
  await Promise.all([agent, messages]);
  expect(asked).toEqual([`/api/agents/${id}`, `/api/agents/${id}/messages?since=0&last=60&packed=true`]);
  // Later it is to know what is so by then.
  await client.agent(id);
  expect(asked).toHaveLength(3);
  client.close();
});

test("an early answer that does not come is asked for again by whoever needs it", async () => {
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("no network")));
  const early = new EarlyAnswers("secret");
  void early.ask(`/api/agents/${id}`);
  const client = createClient({ token: "secret", fetch: early.fetch });
  await expect(client.agent(id)).rejects.toMatchObject({ code: "network", retryable: true });
  serve();
  expect((await client.agent(id)).id).toBe(id);
  client.close();
});

test("the list of agents that was asked for early is the one that the first page shows", async () => {
  serve();
  const early = new EarlyAnswers("secret");
  void early.ask(firstAgents);
  const client = createClient({ token: "secret", fetch: early.fetch });
  const wrapper = ({ children }: { children: ReactNode }) => createElement(TokenrailProvider, { client, children });
  const { result } = renderHook(() => useAgents(), { wrapper });
  await waitFor(() => expect(result.current.loading).toBe(false));
  expect(asked.filter((path) => path.startsWith("/api/agents"))).toEqual([
    "/api/agents?limit=100",
    "/api/agents?limit=100&pinned=true",
  ]);
  client.close();
});
