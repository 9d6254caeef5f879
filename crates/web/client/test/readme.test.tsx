// @vitest-environment jsdom
// The React examples of the READMEs, as they stand there, in a page.
import { act, cleanup, render, waitFor } from "@testing-library/react";
import { StrictMode } from "react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { FakeServer } from "./fake-server.js";
import { Journal } from "./journal.js";

let server: FakeServer;
let journal: Journal;

beforeEach(() => {
  server = new FakeServer();
  journal = new Journal();
  server.host(journal);
  const { fetch, WebSocket } = server.options();
  vi.stubGlobal("fetch", fetch);
  vi.stubGlobal("WebSocket", WebSocket);
  history.replaceState(null, "", `/?agent=${journal.agentId}#token=secret`);
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.resetModules();
});

function answer(text: string): void {
  const said = journal.message();
  journal.say(said, text);
  journal.complete(said);
  journal.add("response", text, { eventType: "result", outcome: "completed" });
}

it.each([
  ["client", () => import("readme:client")],
  ["server", () => import("readme:server")],
])("the example of the README of the %s shows each answer once", async (_, load) => {
  journal.user("question");
  answer("first answer");
  const { default: App } = await load();
  const { container } = render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
  const shown = () => [...container.querySelectorAll("p")].map((line) => line.textContent);
  await waitFor(() => expect(shown()).toEqual(["question", "first answer"]));
  await waitFor(() => expect(server.heard.map((frame) => frame.type)).toContain("subscribe"));
  const before = journal.events.length;
  journal.user("another");
  answer("second answer");
  act(() => server.announce(journal, journal.events.length - before));
  await waitFor(() => expect(shown()).toEqual(["question", "first answer", "another", "second answer"]));
});
