import { afterEach, beforeEach, expect, it } from "vitest";
import { AgentList, type Agent, TokenrailClient } from "../src/index.js";
import { FakeServer } from "./fake-server.js";
import { Journal } from "./journal.js";

let server: FakeServer;
let client: TokenrailClient;
const lists: AgentList[] = [];

beforeEach(() => {
  server = new FakeServer();
  client = new TokenrailClient(server.options());
});
afterEach(() => {
  for (const list of lists.splice(0)) list.stop();
  client.close();
});

/** Hosts one more agent. Ids are ordered by time. */
function hosted(name: string, more: Partial<Agent> = {}): Agent {
  const journal = new Journal(`01900000-0000-7000-8000-${String(server.agents.size).padStart(12, "0")}`);
  server.host(journal, "completed");
  const { agent } = server.agents.get(journal.agentId)!;
  return Object.assign(agent, { name, ...more });
}

function listOf(options?: { archived: boolean }): AgentList {
  const list = new AgentList(client, options);
  lists.push(list);
  list.start();
  return list;
}

const names = (list: AgentList) => list.snapshot().agents.map(({ name }) => name);

/** Changes an agent on the server, and tells it as the server does. */
function edit(agent: Agent, change: Partial<Agent>): void {
  Object.assign(agent, change);
  const payload = { agentId: agent.id, status: agent.status, openQuestions: 0, edited: true, timestamp: "" };
  server.news({ type: "agent:updated", payload, timestamp: 0 });
}

async function until(list: AgentList, expected: (string | undefined)[]): Promise<void> {
  await expect.poll(() => names(list)).toEqual(expected);
}

async function connected(): Promise<void> {
  await expect.poll(() => client.connection.state).toBe("open");
}

it("an agent that is archived moves to the other list, and back", async () => {
  const [, b] = [hosted("a"), hosted("b"), hosted("c")];
  const [list, archive] = [listOf(), listOf({ archived: true })];
  await until(list, ["c", "b", "a"]);
  await until(archive, []);
  await connected();
  edit(b, { archived: true });
  await until(list, ["c", "a"]);
  await until(archive, ["b"]);
  edit(b, { archived: false });
  await until(list, ["c", "b", "a"]);
  await until(archive, []);
});

it("another name is shown in every list", async () => {
  const a = hosted("a");
  const list = listOf();
  await until(list, ["a"]);
  await connected();
  edit(a, { name: "Ada" });
  await until(list, ["Ada"]);
});

it("a new agent is not in the list of archived ones", async () => {
  hosted("a", { archived: true });
  const [list, archive] = [listOf(), listOf({ archived: true })];
  await until(archive, ["a"]);
  await connected();
  const b = hosted("b");
  server.news({ type: "agent:created", payload: { agent: b, timestamp: "" }, timestamp: 0 });
  await until(list, ["b"]);
  expect(names(archive)).toEqual(["a"]);
});

it("all pinned agents are listed, also those that are older than the rest", async () => {
  hosted("oldest", { pinned: true });
  const old = hosted("old");
  for (let n = 0; n < 100; n += 1) hosted(`n${n}`);
  const list = listOf();
  await expect.poll(() => list.snapshot().agents.length).toBe(101);
  expect([names(list)[0], names(list)[99], names(list)[100]]).toEqual(["n99", "n0", "oldest"]);
  await connected();
  edit(old, { name: "renamed" });
  edit([...server.agents.values()].at(-1)!.agent, { name: "newest" });
  await expect.poll(() => names(list)[0]).toBe("newest");
  expect(names(list).slice(-2), "an older agent would leave a gap").toEqual(["n0", "oldest"]);
  edit(old, { pinned: true });
  await expect.poll(() => names(list).slice(-3)).toEqual(["n0", "renamed", "oldest"]);
});
