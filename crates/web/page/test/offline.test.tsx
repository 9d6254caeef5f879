import { TokenrailError, applyEvents, emptyTranscript } from "@tokenrail/client";
import { TokenrailProvider } from "@tokenrail/client/react";
import { act, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { Banner } from "../src/app/Banner.tsx";
import { LinkProvider, type Phase, useLink } from "../src/connection/link.tsx";
import { Composer } from "../src/conversation/Composer.tsx";
import { Header } from "../src/conversation/Header.tsx";
import { Outbox, useOutbox } from "../src/conversation/outbox.ts";
import { Pulse } from "../src/conversation/Pulse.tsx";
import { Told } from "./events.ts";
import { FakeClient, away } from "./fake-client.ts";

beforeEach(() => void vi.useFakeTimers({ now: Date.parse("2026-11-22T06:43:00.000Z") }));
afterEach(() => {
  vi.useRealTimers();
  sessionStorage.clear();
});

/** Whatever is due in this time, and the answers to it. */
async function after(ms = 0): Promise<void> {
  await act(() => vi.advanceTimersByTimeAsync(ms));
}

const nothing = () => undefined;
const running = new Told().prompt("go").text("m", "Reading the notes");
const { items } = applyEvents(emptyTranscript, running.events);

function Page({ agentId = "a", fake }: { agentId?: string | null; fake: FakeClient }) {
  const [phase, onCaughtUp] = useLink();
  const outbox = useOutbox();
  const props = { items, head: 2, plain: false, notices: false, onPlain: nothing, onNotices: nothing };
  return (
    <>
      <Banner {...{ phase, agentId, onCaughtUp }} />
      <LinkProvider value={phase}>
        <Header agent={fake.agentNow} {...props} canWrite onSearch={nothing} onOpen={nothing} />
        <Pulse items={items} />
        <Composer agent={fake.agentNow} send={(content, images) => outbox.send("a", content, images)} />
      </LinkProvider>
    </>
  );
}

async function show(agentId: string | null = "a") {
  const fake = new FakeClient();
  render(
    <TokenrailProvider client={fake.client}>
      <Page agentId={agentId} fake={fake} />
    </TokenrailProvider>,
  );
  await after(500);
  const become = async (...state: Parameters<FakeClient["become"]>) => {
    act(() => fake.become(...state));
    await after();
  };
  return { fake, become };
}

const lost = { state: "waiting", retryInMs: 5_000, error: away() } as const;
const banner = () => screen.queryByTestId("banner")?.textContent;

test("a lost connection is said with a countdown, and the user can retry at once", async () => {
  const { fake, become } = await show();
  await become(lost);
  expect(banner()).toBeUndefined();
  await after(1_500);
  expect(banner()).toBe("Connection lost. Retrying in 4 sTry again");
  await after(2_000);
  expect(banner()).toContain("Retrying in 2 s");
  fireEvent.click(screen.getByText("Try again"));
  expect(fake.retryNow).toHaveBeenCalledOnce();
  await become({ state: "connecting" });
  expect(banner()).toContain("Connection lost. Retrying…");
  await become({ ...lost, retryInMs: 9_000 });
  expect(banner()).toContain("Retrying in 9 s");
});

test("while the server is away, nothing that needs it can be pressed", async () => {
  const fake = new FakeClient();
  fake.agentNow = { ...fake.agentNow, queued: 1 };
  fake.turns.mockResolvedValue([{ agentId: "a", number: 2, status: "queued", prompt: "More" }] as never);
  render(
    <TokenrailProvider client={fake.client}>
      <Page fake={fake} />
    </TokenrailProvider>,
  );
  await after(500);
  const states = () => ["stop", "cancel", "send-now", "edit-queued", "withdraw"].map((id) => screen.getByTestId<HTMLButtonElement>(id).disabled);
  expect(states()).toEqual([false, false, false, false, false]);
  act(() => fake.become(lost));
  expect(states()).toEqual([true, true, true, true, true]);
  act(() => fake.become({ state: "open" }));
  expect(states()).toEqual([false, false, false, false, false]);
});

test("after the return, the banner counts the events that were missed, and then goes away", async () => {
  const { fake, become } = await show();
  const told = new Told().prompt("go").text("m", "one");
  fake.arrive(told.events);
  await after(100);
  await become(lost);
  await after(2_000);
  fake.agentNow = { ...fake.agentNow, head: 122 };
  await become({ state: "open" });
  expect(banner()).toBe("Connected. Catching up…");
  for (let number = 0; number < 120; number++) told.text("m", ` ${number}`);
  fake.arrive(told.events.slice(2));
  await after(100);
  expect(banner()).toBe("Caught up: 120 events.");
  await after(4_000);
  expect(banner()).toBeUndefined();
});

test("a short interruption, and one on the first page, are no trouble", async () => {
  const { become } = await show(null);
  await become(lost);
  await after(500);
  expect(banner()).toBeUndefined();
  await become({ state: "open" });
  expect(banner()).toBeUndefined();
  await after(10_000);
  await become(lost);
  await after(2_000);
  await become({ state: "open" });
  expect(banner()).toBe("Connected again.");
});

test("a connection that the server refuses for good offers to load the page again", async () => {
  const { become } = await show();
  await become({ state: "closed", error: new TokenrailError("protocol", "the server closed the connection") });
  await after(1_000);
  expect(banner()).toBe("Disconnected. The server closed the connection.Reload the page");
});

test("while the connection is lost, the clock and the rate stand still", async () => {
  const { become } = await show();
  const clock = () => screen.getByTitle("How long the running turn has taken so far").textContent;
  await after(3_000);
  const before = clock();
  await become(lost);
  await after(10_000);
  expect(clock()).toBe(before);
  expect(screen.getByTestId("pulse").textContent).toContain("– tokens/s");
  await become({ state: "open" });
  await after(1_000);
  expect(clock()).not.toBe(before);
  expect(screen.getByTestId("pulse").textContent).toContain("0 tokens/s");
});

const pulse = (phase: Phase, more: Told) => (
  <LinkProvider value={phase}>
    <Pulse items={applyEvents(emptyTranscript, more.events).items} />
  </LinkProvider>
);

test("what is caught up after the return does not count as speed", async () => {
  const told = new Told().prompt("go").text("m", "Reading the notes");
  const { rerender } = render(pulse("live", told));
  const rate = () => screen.getByTestId("pulse").textContent;
  told.text("m", "x".repeat(4_000));
  rerender(pulse("catching-up", told));
  await after(1_600);
  expect(rate()).toBe("0 tokens/s");
  rerender(pulse("live", told));
  await after(1_600);
  expect(rate()).toBe("0 tokens/s");
  told.text("m", "x".repeat(400));
  rerender(pulse("live", told));
  await after(500);
  await after(1_000);
  expect(rate()).toBe("100 tokens/s");
});

test("what is caught up does not count as speed, even if the page is live again before the next look", async () => {
  const told = new Told().prompt("go").text("m", "Reading the notes");
  const { rerender } = render(pulse("live", told));
  await after(2_000);
  rerender(pulse("away", told));
  await after(5_000);
  rerender(pulse("catching-up", told));
  await after(100);
  told.text("m", "x".repeat(4_000));
  rerender(pulse("live", told));
  await after(1_000);
  await after(1_000);
  expect(screen.getByTestId("pulse").textContent).toBe("0 tokens/s");
  const line = document.querySelector(".rates-line")?.getAttribute("d") ?? "";
  expect(new Set(line.split(/[ML]/).slice(1).map((point) => point.split(" ")[1])).size, line).toBe(1);
});

function write(text: string): void {
  fireEvent.change(screen.getByLabelText("Message to the agent"), { target: { value: text } });
  fireEvent.submit(screen.getByTestId("composer"));
}

test("a message that did not arrive is sent by itself when the connection is back, with the same key", async () => {
  const { fake, become } = await show();
  fake.send.mockRejectedValue(away());
  await become(lost);
  write("And the tests?");
  await after();
  expect(screen.getByTestId("unsent").textContent).toContain("Not delivered yet. It will be sent when the server is back.");
  expect(screen.queryByRole("alert")).toBeNull();
  expect(screen.getByLabelText<HTMLTextAreaElement>("Message to the agent").value).toBe("");
  let answer = nothing as () => void;
  fake.send.mockImplementation(() => new Promise((resolve) => (answer = () => resolve({ turn: 2, queued: true }))));
  await become({ state: "open" });
  // A connection that comes and goes while the message is on its way sends nothing twice.
  await become(lost);
  await become({ state: "open" });
  await after(20_000);
  expect(fake.send.mock.calls.length).toBe(2);
  answer();
  await after();
  expect(screen.queryByTestId("unsent")).toBeNull();
  await after(60_000);
  const sent = fake.send.mock.calls.map(([id, { content }, { idempotencyKey }]) => [id, content, idempotencyKey]);
  expect(sent).toEqual([["a", "And the tests?", sent[0]?.[2]], sent[0]]);
});

test("a message that did not arrive is sent again even if the connection seems open", async () => {
  const { fake } = await show();
  fake.send.mockRejectedValueOnce(away());
  write("Hello?");
  await after();
  expect(screen.getByTestId("unsent")).toBeTruthy();
  await after(5_000);
  expect(screen.queryByTestId("unsent")).toBeNull();
});

test("a message that did not arrive can be edited, and is then not sent by itself", async () => {
  const { fake, become } = await show();
  fake.send.mockRejectedValueOnce(away());
  await become(lost);
  write("Delete it all");
  await after();
  fireEvent.click(screen.getByRole("button", { name: /^Edit: / }));
  expect(screen.getByLabelText<HTMLTextAreaElement>("Message to the agent").value).toBe("Delete it all");
  await become({ state: "open" });
  await after(60_000);
  expect(fake.send.mock.calls.length).toBe(1);
});

test("a kept message that the server refuses stays with the reason, and is not sent again", async () => {
  const fake = new FakeClient();
  const outbox = new Outbox(fake.client);
  fake.send.mockRejectedValueOnce(away());
  await outbox.send("a", "More");
  fake.send.mockRejectedValue(new TokenrailError("agent_deleted" as never, "the agent was deleted"));
  fake.become({ state: "open" });
  await after();
  expect(outbox.get("a")?.refusal?.message).toBe("the agent was deleted");
  fake.become({ state: "open" });
  await after(60_000);
  expect(fake.send.mock.calls.length).toBe(2);
  expect(outbox.takeBack("a")?.content).toBe("More");
});

test("that the server cannot be reached is forgotten when the connection is back", async () => {
  const { fake, become } = await show();
  fake.cancel.mockRejectedValueOnce(away());
  // The page does not know yet that the server is away.
  fireEvent.click(screen.getByTestId("cancel"));
  await after();
  await become(lost);
  expect(screen.getByRole("alert").textContent).toContain("Cannot reach the server.");
  await become({ state: "open" });
  expect(screen.queryByRole("alert")).toBeNull();
});

test("a message is on screen from the moment it is sent, also while the connection is lost", async () => {
  const { fake, become } = await show();
  fake.send.mockReturnValue(new Promise(() => {}));
  await become(lost);
  write("More");
  await after();
  expect(screen.getByTestId("sending").textContent).toBe("Sending…More");
});

test("a message cannot be edited while it is being sent, because both texts could arrive", async () => {
  const { fake, become } = await show();
  fake.send.mockRejectedValueOnce(away());
  await become(lost);
  write("Hello");
  await after();
  let answer = nothing as () => void;
  fake.send.mockImplementation(() => new Promise((resolve) => (answer = () => resolve({ turn: 2, queued: true }))));
  await become({ state: "open" });
  fireEvent.click(screen.getByRole("button", { name: /^Edit: / }));
  expect(screen.getByLabelText<HTMLTextAreaElement>("Message to the agent").value).toBe("");
  expect(screen.getByTestId("unsent").textContent).toContain("Hello");
  answer();
  await after();
  expect(screen.queryByTestId("unsent")).toBeNull();
  expect(fake.send).toHaveBeenCalledTimes(2);
});

test("a message that did not arrive is sent with the same key after the page was loaded again", async () => {
  const before = new FakeClient();
  before.send.mockRejectedValue(away());
  await new Outbox(before.client).send("a", "More");
  before.become({ state: "closed" });
  const { fake } = await show();
  expect(screen.getByTestId("unsent").textContent).toContain("More");
  await after(5_000);
  expect(fake.send.mock.calls).toEqual([before.send.mock.calls[0]]);
  expect(screen.queryByTestId("unsent")).toBeNull();
  expect(sessionStorage.getItem("tokenrail-unsent")).toBeNull();
});

test("a kept message is not sent by itself if its key may be forgotten", async () => {
  const before = new FakeClient();
  before.send.mockRejectedValue(away());
  await new Outbox(before.client).send("a", "More");
  before.become({ state: "closed" });
  vi.setSystemTime(Date.now() + 24 * 3_600_000);
  const { fake } = await show();
  await after(5_000);
  expect(fake.send).not.toHaveBeenCalled();
  const said = screen.getByRole("alert").textContent;
  expect(said).toContain("This message is more than 23 hours old, so it was not sent automatically; choose Edit, and then send it");
  fireEvent.click(screen.getByRole("button", { name: /^Edit: / }));
  expect(screen.getByLabelText<HTMLTextAreaElement>("Message to the agent").value).toBe("More");
});

test("what is written while a message is being sent stays", async () => {
  const { fake } = await show();
  const field = () => screen.getByLabelText<HTMLTextAreaElement>("Message to the agent");
  let answer = nothing as () => void;
  fake.send.mockImplementation(() => new Promise((resolve) => (answer = () => resolve({ turn: 2, queued: true }))));
  write("one");
  fireEvent.change(field(), { target: { value: "two" } });
  answer();
  await after();
  expect(field().value).toBe("two");
});

test("the button that stops an agent has one name, and says what it does", async () => {
  await show();
  const buttons = screen.getAllByRole("button", { name: "Stop", hidden: true });
  expect(buttons.map((button) => button.title)).toEqual(Array(2).fill("Stop this turn. The turn ends as “cancelled”."));
});

test("a kept message is not replaced by another one that does not arrive", async () => {
  const fake = new FakeClient();
  const outbox = new Outbox(fake.client);
  fake.send.mockRejectedValue(away());
  await outbox.send("a", "first");
  await expect(outbox.send("a", "second")).rejects.toThrow("cannot reach the server");
  expect(outbox.get("a")?.content).toBe("first");
});
