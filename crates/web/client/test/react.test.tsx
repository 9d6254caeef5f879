// @vitest-environment jsdom
import { act, cleanup, render, screen } from "@testing-library/react";
import { StrictMode, memo } from "react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Client, type Message, createClient, textOf } from "../src/index.js";
import { TokenrailProvider, preloadAgentMessages, useAgentMessages, useAgents, useConnection } from "../src/react/index.js";
import { FakeServer, problem } from "./fake-server.js";
import { Journal } from "./journal.js";

let server: FakeServer;
let client: Client;
let journal: Journal;
/** How often each message was drawn, by its text. */
let draws: Map<string, number>;

const Line = memo(function Line({ message }: { message: Message }) {
  const text = textOf(message);
  draws.set(message.id, (draws.get(message.id) ?? 0) + 1);
  return <li>{text}</li>;
});

function Conversation({ id }: { id: string | null }) {
  const { messages, loading, error, connection, agent, refetch } = useAgentMessages(id);
  return (
    <>
      <p data-testid="state">{loading ? "loading" : (error?.code ?? "ready")}</p>
      <p data-testid="connection">{connection.state}</p>
      <p data-testid="agent">{agent?.status ?? ""}</p>
      <button type="button" onClick={refetch}>
        again
      </button>
      <ul data-testid="lines">
        {messages.map((message) => (
          <Line key={message.id} message={message} />
        ))}
      </ul>
    </>
  );
}

function Agents() {
  const { agents } = useAgents();
  return <ol data-testid="agents">{agents.map((agent) => `${agent.name}: ${agent.status}${agent.waitingSince ? ` needs ${agent.openQuestions}` : ""}; `)}</ol>;
}

function show(id: string | null, more: React.ReactNode = null) {
  return render(
    <StrictMode>
      <TokenrailProvider client={client}>
        <Conversation id={id} />
        {more}
      </TokenrailProvider>
    </StrictMode>,
  );
}

const text = (id: string) => screen.getByTestId(id).textContent;
const lines = () => [...screen.getByTestId("lines").children].map((line) => line.textContent);
const until = (check: () => void) => act(() => vi.waitFor(check, { timeout: 10_000 }));

function say(words: string): void {
  const said = journal.message();
  journal.say(said, words);
  journal.complete(said);
}

beforeEach(() => {
  server = new FakeServer();
  client = createClient(server.options());
  journal = new Journal();
  draws = new Map();
  server.host(journal);
});
afterEach(() => {
  cleanup();
  client.close();
});

describe("useAgentMessages", () => {
  it("shows the history, and then what comes", async () => {
    say("before");
    show(journal.agentId);
    expect(text("state")).toBe("loading");
    await until(() => expect(lines()).toEqual(["before"]));
    expect(text("state")).toBe("ready");
    const said = journal.message();
    journal.say(said, "be");
    await until(() => expect(text("connection")).toBe("open"));
    server.announce(journal);
    await until(() => expect(lines()).toEqual(["before", "be"]));
    journal.say(said, "tween");
    server.announce(journal);
    await until(() => expect(lines()).toEqual(["before", "between"]));
    journal.complete(said);
    server.announce(journal);
    await until(() => expect(lines()).toEqual(["before", "between"]));
  });

  it("follows once, in StrictMode and in many components", async () => {
    say("hello");
    show(journal.agentId, <Conversation id={null} />);
    await until(() => expect(screen.getAllByTestId("lines")[0]?.textContent).toBe("hello"));
    await until(() => expect(server.heard.filter((frame) => frame.type === "subscribe")).toHaveLength(1));
    expect(server.requests.filter((request) => request.endsWith("/messages"))).toHaveLength(1);
    expect(server.sockets.size).toBe(1);
  });

  it("finds what was begun before it was there", async () => {
    say("hello");
    const { agent } = preloadAgentMessages(client, journal.agentId);
    const { messages } = preloadAgentMessages(client, journal.agentId);
    await Promise.all([agent, messages]);
    show(journal.agentId);
    expect(lines(), "in the first picture").toEqual(["hello"]);
    await until(() => expect(text("connection")).toBe("open"));
    expect(server.requests.filter((request) => request.endsWith("/messages"))).toHaveLength(1);
  });

  it("draws the message that streams, and no other", async () => {
    for (let count = 0; count < 200; count += 1) say(`message ${count}`);
    show(journal.agentId);
    await until(() => expect(lines()).toHaveLength(200));
    await until(() => expect(text("connection")).toBe("open"));
    const before = new Map(draws);
    const said = journal.message();
    for (let word = 0; word < 100; word += 1) {
      journal.say(said, "word ");
      server.announce(journal);
    }
    await until(() => expect(lines().at(-1)).toBe("word ".repeat(100)));
    for (const [id, count] of before) expect(draws.get(id)).toBe(count);
    // What comes together is drawn together.
    expect(draws.get(said.id)).toBeLessThan(100);
  });

  it("takes a hundred thousand events", async () => {
    for (let count = 0; count < 100; count += 1) say(`message ${count}`);
    show(journal.agentId);
    await until(() => expect(lines()).toHaveLength(100));
    await until(() => expect(text("connection")).toBe("open"));
    const before = new Map(draws);
    const said = journal.message();
    for (let word = 0; word < 100_000; word += 1) journal.say(said, "x");
    // The tab was asleep for all of it.
    server.drop();
    await until(() => expect(lines().at(-1)).toHaveLength(100_000));
    for (const [id, count] of before) expect(draws.get(id)).toBe(count);
  });

  it("stays as it was while the server is away, and goes on", async () => {
    say("before");
    show(journal.agentId);
    await until(() => expect(text("connection")).toBe("open"));
    server.isDown = true;
    act(() => server.drop());
    await until(() => expect(text("connection")).toBe("waiting"));
    expect(lines()).toEqual(["before"]);
    say("meanwhile");
    server.isDown = false;
    await until(() => expect(lines()).toEqual(["before", "meanwhile"]));
  });

  it("loads when the server comes", async () => {
    say("hello");
    server.isDown = true;
    show(journal.agentId);
    await until(() => expect(text("connection")).toBe("waiting"));
    server.isDown = false;
    await until(() => expect(lines()).toEqual(["hello"]));
    expect(text("state")).toBe("ready");
  });

  it("tells what is wrong, and tries again when asked", async () => {
    say("hello");
    server.refuse = (request) => (request.endsWith("/messages") ? problem(404, "not_found") : undefined);
    show(journal.agentId);
    await until(() => expect(text("state")).toBe("not_found"));
    server.refuse = undefined;
    act(() => screen.getByText("again").click());
    await until(() => expect(lines()).toEqual(["hello"]));
    expect(text("state")).toBe("ready");
  });

  it("shows another agent when it is told to, and nothing without one", async () => {
    say("one");
    const other = new Journal("01900000-0000-7000-8000-000000000002");
    other.user("two");
    server.host(other);
    const { rerender } = show(null);
    expect(text("state")).toBe("ready");
    const shown = (id: string) => (
      <StrictMode>
        <TokenrailProvider client={client}>
          <Conversation id={id} />
        </TokenrailProvider>
      </StrictMode>
    );
    rerender(shown(journal.agentId));
    await until(() => expect(lines()).toEqual(["one"]));
    rerender(shown(other.agentId));
    await until(() => expect(lines()).toEqual(["two"]));
  });

  it("knows how the agent is", async () => {
    show(journal.agentId);
    await until(() => expect(text("agent")).toBe("running"));
    await until(() => expect(text("connection")).toBe("open"));
    const hosted = server.agents.get(journal.agentId);
    if (hosted) hosted.status = "completed";
    journal.end();
    server.announce(journal);
    await until(() => expect(text("agent")).toBe("completed"));
  });
});

describe("useAgents", () => {
  const hosted = (name: string, at: number) => {
    const other = new Journal(`01900000-0000-7000-8000-00000000000${at}`);
    server.host(other);
    const its = server.agents.get(other.agentId);
    if (!its) throw new Error("it was hosted above");
    its.agent.name = name;
    return its;
  };

  it("is kept by news, newest first", async () => {
    server.agents.clear();
    const first = hosted("one", 1);
    render(
      <StrictMode>
        <TokenrailProvider client={client}>
          <Agents />
          <Connection />
        </TokenrailProvider>
      </StrictMode>,
    );
    await until(() => expect(text("agents")).toBe("one: running; "));
    await until(() => expect(text("just-connection")).toBe("open"));
    const second = hosted("two", 2);
    server.news({ type: "agent:created", payload: { agent: second.agent, timestamp: "" }, timestamp: 0 });
    await until(() => expect(text("agents")).toBe("two: running; one: running; "));
    const waiting = { agentId: first.agent.id, status: "running", openQuestions: 2, waitingSince: "t", timestamp: "" } as const;
    // The news itself says what the agent needs, even if the agent cannot be read.
    server.refuse = (request) => (request.endsWith(first.agent.id) ? new Response(null, { status: 503 }) : undefined);
    server.news({ type: "agent:updated", payload: waiting, timestamp: 0 });
    await until(() => expect(text("agents")).toBe("two: running; one: running needs 2; "));
    server.refuse = undefined;
    first.status = "failed";
    server.news({ type: "agent:updated", payload: { agentId: first.agent.id, status: "failed", openQuestions: 0, timestamp: "" }, timestamp: 0 });
    await until(() => expect(text("agents")).toBe("two: running; one: failed; "));
    server.agents.delete(second.agent.id);
    server.news({ type: "agent:deleted", payload: { agentId: second.agent.id, timestamp: "" }, timestamp: 0 });
    await until(() => expect(text("agents")).toBe("one: failed; "));
    hosted("three", 3);
    act(() => server.drop());
    await until(() => expect(text("agents")).toBe("three: running; one: failed; "));
  });
});

function Connection() {
  return <p data-testid="just-connection">{useConnection().state}</p>;
}
