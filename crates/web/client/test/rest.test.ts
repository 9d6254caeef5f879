import { afterEach, describe, expect, it, vi } from "vitest";
import { type MessagesQuery, TokenrailClient, TokenrailError, createClient } from "../src/index.js";
import { FakeServer, problem } from "./fake-server.js";
import { Journal } from "./journal.js";

interface Seen {
  address: string;
  init: RequestInit;
}

/** A client whose requests are kept, and answered one after the other. */
function recording(...answers: (Response | Error)[]) {
  const seen: Seen[] = [];
  const fetch = async (address: RequestInfo | URL, init: RequestInit = {}) => {
    seen.push({ address: String(address), init });
    const answer = answers.shift() ?? Response.json({});
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return { seen, client: createClient({ baseUrl: "http://tokenrail.test/", token: "secret", fetch }) };
}

/** An answer that goes on when it is told to, and otherwise does not. */
function stalled(beginning: string, init: ResponseInit = {}) {
  const encoder = new TextEncoder();
  const answer = { isLeft: false, response: new Response(), say: (_: string | undefined) => {} };
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      answer.say = (more) => (more === undefined ? controller.close() : controller.enqueue(encoder.encode(more)));
      answer.say(beginning);
    },
    cancel() {
      answer.isLeft = true;
    },
  });
  answer.response = new Response(body, init);
  return answer;
}

const header = (seen: Seen | undefined, name: string) => (seen?.init.headers as Record<string, string>)[name];

afterEach(() => {
  vi.useRealTimers();
});

describe("a call", () => {
  it("carries the token, and its query without what is not given", async () => {
    const { client, seen } = recording(Response.json([]));
    await client.agents({ status: ["running", "failed"], limit: 5 });
    expect(seen[0]?.address).toBe("http://tokenrail.test/api/agents?status=running%2Cfailed&limit=5");
    expect(header(seen[0], "Authorization")).toBe("Bearer secret");
  });

  it("returns a patch with whether it is complete", async () => {
    const patch = new Response("diff --git a/ü b/ü\n", { headers: { "Tokenrail-Truncated": "true" } });
    const { client, seen } = recording(Response.json({ source: "none" }), patch, new Response(""));
    expect(await client.changes("a/b", { turn: 2 })).toEqual({ source: "none" });
    const file = { path: "a b", oldPath: "c" };
    expect(await client.patch("a", { file })).toEqual({ text: "diff --git a/ü b/ü\n", truncated: true });
    expect(await client.patch("a")).toEqual({ text: "", truncated: false });
    expect(seen.map(({ address }) => address.replace("http://tokenrail.test/api/agents", ""))).toEqual([
      "/a%2Fb/changes?turn=2",
      "/a/changes/patch?path=a+b&oldPath=c",
      "/a/changes/patch",
    ]);
  });

  it("asks for the token each time, where it is a function", async () => {
    const tokens = ["one", "two"];
    const { fetch } = new FakeServer();
    const given: unknown[] = [];
    const spy = (address: RequestInfo | URL, init: RequestInit = {}) => {
      given.push((init.headers as Record<string, string>)["Authorization"]);
      return fetch(address, init);
    };
    const client = createClient({ baseUrl: "http://tokenrail.test", token: async () => tokens.shift() ?? "", fetch: spy });
    await client.agents().catch(() => {});
    await client.agents().catch(() => {});
    expect(given).toEqual(["Bearer one", "Bearer two"]);
  });

  it("that launches is sent again with the same key until it is answered", async () => {
    const { client, seen } = recording(new TypeError("reset"), problem(503, "outcome_unknown"), Response.json({ id: "a" }, { status: 201 }));
    expect(await client.launch({ prompt: "hi" })).toEqual({ id: "a" });
    const keys = new Set(seen.map((each) => header(each, "Idempotency-Key")));
    expect([seen.length, keys.size]).toEqual([3, 1]);
  });

  it("that launches is sent again if a proxy gave up, or the server was stopped for a while", async () => {
    const { client, seen } = recording(new Response("", { status: 502 }), new Response("", { status: 408 }), Response.json({ id: "a" }, { status: 201 }));
    expect(await client.launch({ prompt: "hi" })).toEqual({ id: "a" });
    expect(seen).toHaveLength(3);
  });

  it("that launches does not wait for long, and is not sent again if that cannot help", async () => {
    for (const response of [new Response("", { status: 503, headers: { "Retry-After": "3600" } }), new Response("", { status: 501 })]) {
      const { client, seen } = recording(response);
      await expect(client.launch({ prompt: "hi" })).rejects.toMatchObject({ code: "protocol" });
      expect(seen).toHaveLength(1);
    }
  });

  it("cancels one turn, or all", async () => {
    const { client, seen } = recording();
    await client.cancel("a", { turn: 3 });
    await client.cancel("a");
    expect(seen.map(({ address }) => address.replace(/.*agents/, ""))).toEqual(["/a/cancel?turn=3", "/a/cancel"]);
  });

  it("without a key is sent once", async () => {
    const { client, seen } = recording(new TypeError("reset"));
    await expect(client.cancel("a")).rejects.toMatchObject({ code: "network", retryable: true });
    expect(seen).toHaveLength(1);
  });

  it("that is refused says why", async () => {
    const { client } = recording(problem(429, "rate_limited", { "Retry-After": "7" }));
    const error = await client.agents().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(TokenrailError);
    expect(error).toMatchObject({ code: "rate_limited", status: 429, retryable: true, retryAfterMs: 7_000, problem: { requestId: "r" } });
  });

  it("that something else than Tokenrail answers is an error too", async () => {
    for (const [status, retryable] of [[502, true], [408, true], [425, true], [429, true], [403, false]] as const) {
      const { client } = recording(new Response("<h1>Not now</h1>", { status }));
      await expect(client.agents()).rejects.toMatchObject({ code: "protocol", status, retryable });
    }
  });

  it("whose answer does not begin is given up", async () => {
    vi.useFakeTimers();
    const fetch = (_: RequestInfo | URL, init: RequestInit = {}) =>
      new Promise<Response>((_, reject) => init.signal?.addEventListener("abort", () => reject(init.signal?.reason)));
    const agents = createClient({ baseUrl: "http://tokenrail.test", fetch }).agents();
    const refused = expect(agents).rejects.toMatchObject({ code: "network", retryable: true });
    await vi.advanceTimersByTimeAsync(31_000);
    await refused;
  });

  it("whose answer begins and does not go on is given up, and made again where that does no harm", async () => {
    vi.useFakeTimers();
    const halves = [stalled('{"id":'), stalled('{"id":')];
    const { client, seen } = recording(...halves.map(({ response }) => response), Response.json({ id: "a" }));
    const refused = expect(client.agents()).rejects.toMatchObject({ code: "network", retryable: true });
    await vi.advanceTimersByTimeAsync(31_000);
    await refused;
    const launched = client.launch({ prompt: "hi" });
    await vi.advanceTimersByTimeAsync(32_000);
    expect(await launched).toEqual({ id: "a" });
    expect(seen).toHaveLength(3);
    expect(halves.map((each) => each.isLeft)).toEqual([true, true]);
  });

  it("whose refusal does not go on is given up too", async () => {
    vi.useFakeTimers();
    const { client } = recording(stalled('{"code":', { status: 503, headers: { "Content-Type": "application/problem+json" } }).response);
    const refused = expect(client.agents()).rejects.toMatchObject({ code: "protocol", status: 503, retryable: true });
    await vi.advanceTimersByTimeAsync(31_000);
    await refused;
  });

  it("may take as long as it goes on", async () => {
    vi.useFakeTimers();
    const { response, say } = stalled('{"id":');
    const agent = recording(response).client.agent("a");
    for (const more of ['"a', "bc", '"}']) {
      await vi.advanceTimersByTimeAsync(25_000);
      say(more);
    }
    say(undefined);
    expect(await agent).toEqual({ id: "abc" });
  });

  it("that is aborted while its answer comes throws the signal's reason", async () => {
    const { response } = stalled("[");
    const abort = new AbortController();
    const agents = recording(response).client.agents({ signal: abort.signal });
    await Promise.resolve();
    abort.abort(new Error("enough"));
    await expect(agents).rejects.toThrow("enough");
  });

  it("whose answer breaks off may be made again", async () => {
    const { client } = recording(new Response('[{"id":'));
    await expect(client.events("a")).rejects.toMatchObject({ code: "network", retryable: true });
  });

  it("that is aborted throws the signal's reason", async () => {
    const server = new FakeServer();
    server.host(new Journal());
    const client = createClient(server.options());
    await expect(client.agents({ signal: AbortSignal.abort(new Error("enough")) })).rejects.toThrow("enough");
  });

  it("of a list follows its pages", async () => {
    const link = { Link: '</api/agents?before=b&limit=2>; rel="next"' };
    const { client, seen } = recording(Response.json([{ id: "a" }, { id: "b" }], { headers: link }), Response.json([{ id: "c" }]));
    const ids: string[] = [];
    for await (const agent of client.eachAgent({ limit: 2 })) ids.push(agent.id);
    expect(ids).toEqual(["a", "b", "c"]);
    expect(seen[1]?.address).toBe("http://tokenrail.test/api/agents?before=b&limit=2");
  });

  it("of active agents has all of them", async () => {
    const link = { Link: '</api/agents/active?before=a>; rel="next"' };
    const { client, seen } = recording(Response.json([{ id: "a" }], { headers: link }), Response.json([{ id: "b" }]));
    expect((await client.activeAgents()).map((agent) => agent.id)).toEqual(["a", "b"]);
    expect(seen[1]?.address).toBe("http://tokenrail.test/api/agents/active?before=a");
  });

  it("of nodes lists them, and removes one by its id", async () => {
    const nodes = [{ id: 1, name: "a", state: "lost", version: "1.2.3", self: false }];
    const { client, seen } = recording(Response.json(nodes), new Response(null, { status: 204 }));
    expect(await client.nodes()).toEqual(nodes);
    await client.forgetNode(1);
    expect(seen.map(({ address }) => address)).toEqual([
      "http://tokenrail.test/api/nodes",
      "http://tokenrail.test/api/nodes/1",
    ]);
  });

  it("of open permission requests has all of them", async () => {
    const link = { Link: '</api/questions?after=1.a.1-1&limit=100>; rel="next"' };
    const { client, seen } = recording(Response.json([{ requestId: "1-1" }], { headers: link }), Response.json([{ requestId: "1-2" }]));
    expect((await client.questions()).map((question) => question.requestId)).toEqual(["1-1", "1-2"]);
    expect(seen[1]?.address).toBe("http://tokenrail.test/api/questions?after=1.a.1-1&limit=100");
  });

  it("of messages reads page after page, as far as it is asked to", async () => {
    const server = new FakeServer();
    server.pageSize = 3;
    const journal = new Journal();
    for (let count = 0; count < 10; count += 1) journal.user(`message ${count}`);
    server.host(journal);
    const client = new TokenrailClient(server.options());
    const numbers = async (query?: MessagesQuery) => (await client.messages(journal.agentId, query)).map((message) => message.sequenceNumber);
    expect(await numbers()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(await numbers({ since: 6 })).toEqual([7, 8, 9, 10]);
    expect(await numbers({ since: 1, limit: 5 })).toEqual([2, 3, 4, 5, 6]);
    expect(await numbers({ last: 4 })).toEqual([7, 8, 9, 10]);
    expect(await numbers({ since: 10 })).toEqual([]);
  });

  it("that says something takes a text, or a message", async () => {
    const { client, seen } = recording();
    await client.send("a", "and then?");
    await client.send("a", { content: "and then?" });
    expect(seen.map(({ init }) => init.body)).toEqual(['{"content":"and then?"}', '{"content":"and then?"}']);
  });

  it("of a journal says how far the page goes", async () => {
    const server = new FakeServer();
    const journal = new Journal();
    const said = journal.message();
    for (let word = 0; word < 5; word += 1) journal.say(said, "word ");
    journal.complete(said);
    journal.notice("status");
    server.host(journal);
    const client = createClient(server.options());
    const page = await client.messagesPage(journal.agentId);
    expect(page.messages.map((message) => message.sequenceNumber)).toEqual([6, 7]);
    expect(page).toMatchObject({ upTo: 7, head: 7 });
    expect((await client.events(journal.agentId)).messages).toHaveLength(7);
  });
});
