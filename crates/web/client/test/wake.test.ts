// @vitest-environment jsdom
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type Client, createClient } from "../src/index.js";
import { FakeServer } from "./fake-server.js";
import { Journal } from "./journal.js";

let server: FakeServer;
let client: Client;
let journal: Journal;

beforeEach(() => {
  server = new FakeServer();
  journal = new Journal();
  journal.user("hi");
  server.host(journal);
  client = createClient({ ...server.options(), backoff: { firstMs: 60_000, maxMs: 60_000 } });
});
afterEach(() => client.close());

it("does not wait when the network is back", async () => {
  const events = client.follow(journal.agentId);
  await events.next();
  server.drop();
  expect(client.connection.state).toBe("waiting");
  window.dispatchEvent(new Event("online"));
  await vi.waitFor(() => expect(client.connection.state).toBe("open"));
});

it("asks whether the server is there when the tab is seen again", async () => {
  const events = client.follow(journal.agentId);
  await events.next();
  document.dispatchEvent(new Event("visibilitychange"));
  expect(server.heard.at(-1)).toEqual({ type: "ping" });
  expect(client.connection.state).toBe("open");
});

it("listens to nothing when nobody follows", async () => {
  const events = client.follow(journal.agentId);
  await events.next();
  await events.return?.();
  const before = server.heard.length;
  document.dispatchEvent(new Event("visibilitychange"));
  expect(server.heard).toHaveLength(before);
});
