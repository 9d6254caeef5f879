// The client of Durable Streams, as an application would use it. Usage: BASE TOKEN FOLDER STORY AGENT_ID, run in the
// folder of the client.
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DurableStream, stream } from "@durable-streams/client";

const [base, token, folder, story, agent] = process.argv.slice(2);
const url = `${base}/v1/stream/agents/${agent}/events`;
const headers = { Authorization: `Bearer ${token}` };
const file = (name) => join(folder, name);
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const offset = (number) => String(number).padStart(20, "0");
const deltas = (events) => events.filter((event) => event.metadata.eventType === "content_delta").length;
const modes = ["sse", "long-poll"];

async function call(method, path, body) {
  const init = { method, headers: { ...headers, "Content-Type": "application/json" }, body: body && JSON.stringify(body) };
  const response = await fetch(`${base}/api/agents/${agent}${path}`, init);
  assert.ok(response.ok, `${method} ${path}: ${response.status}`);
  return response.status === 204 ? undefined : response.json();
}

async function native() {
  const events = [];
  for (;;) {
    const page = await call("GET", `/events?since=${events.length}`);
    if (page.length === 0) return events;
    events.push(...page);
  }
}

// Waits for events that are saved.
async function saved(has) {
  for (;;) {
    const events = await native();
    if (has(events)) return events;
    await sleep(5);
  }
}

const turns = (count) => saved((events) => events.filter((event) => event.metadata.eventType === "result").length === count);

// `json` then reads all pages. With `live: false`, the client would read only one.
const read = (options = {}) => stream({ url, headers, ...options });

// Gives all batches to `tell`, until the stream is closed.
async function subscribe(live, from, tell) {
  const response = await stream({ url, headers, live, offset: from });
  await new Promise((done, fail) => {
    response.subscribeJson((batch) => {
      const last = batch.items.at(-1)?.sequenceNumber;
      try {
        if (last !== undefined) assert.equal(batch.offset, offset(last), "a batch ends at its offset");
        tell(batch);
      } catch (error) {
        fail(error);
      }
      if (batch.streamClosed) done();
    });
    response.closed.catch(fail);
  });
}

// Follows the stream to its end. The first promise is kept when the history was read.
function follow(live, from) {
  let caughtUp;
  const upToDate = new Promise((done) => (caughtUp = done));
  const toItsEnd = async () => {
    const seen = [];
    await subscribe(live, from, (batch) => {
      seen.push(...batch.items);
      if (batch.upToDate) caughtUp();
    });
    return seen;
  };
  return { upToDate, all: toItsEnd() };
}

const stories = {
  async history() {
    const all = await native();
    const pages = new Map();
    // What a browser does with its cache.
    const caching = async (address, init) => {
      const known = pages.get(address);
      if (known === undefined) {
        const response = await fetch(address, init);
        pages.set(address, { response: response.clone(), tag: response.headers.get("etag") });
        return response;
      }
      const response = await fetch(address, { ...init, headers: { ...init.headers, "If-None-Match": known.tag } });
      assert.equal(response.status, 304, address);
      return known.response.clone();
    };
    for (const _ of ["from the server", "from the cache"]) {
      const response = await read({ fetch: caching });
      assert.deepEqual(await response.json(), all);
      assert.deepEqual([response.offset, response.upToDate, response.streamClosed], [offset(all.length), true, false]);
    }
    assert.ok(Math.floor(all.length / 8) <= pages.size, "a page has eight events");
    for (let number = 0; number <= all.length; number += 1) {
      assert.deepEqual(await (await read({ offset: offset(number) })).json(), all.slice(number), `after ${number}`);
    }
    assert.deepEqual(await (await read({ offset: "now" })).json(), []);
    assert.equal((await (await read({ live: false })).json()).length, 8, "one page, as the documentation says");

    const handle = new DurableStream({ url, headers, contentType: "application/json", backoffOptions: { maxRetries: 0 } });
    const metadata = await handle.head();
    assert.deepEqual([metadata.exists, metadata.contentType, metadata.offset, metadata.streamClosed, metadata.cacheControl],
      [true, "application/json", offset(all.length), false, "no-store"]);
    for (const write of [() => handle.append("{}"), () => handle.create(), () => handle.close(), () => handle.delete()]) {
      await assert.rejects(write, (error) => error.status === 405);
    }
    await assert.rejects(read({ headers: { Authorization: "Bearer wrong" } }), (error) => error.status === 401);
    await assert.rejects(read({ offset: offset(all.length + 1) }), (error) => error.status === 409);
    await assert.rejects(read({ offset: "7" }), (error) => error.status === 400);
    const nowhere = { url: url.replace(agent, "01890000-0000-7000-8000-000000000000"), headers };
    await assert.rejects(stream({ ...nowhere, live: false }), (error) => error.status === 404);
    assert.equal((await DurableStream.head(nowhere)).exists, false);
  },

  async live() {
    const before = (await saved((events) => deltas(events) === 20)).length;
    const readers = [];
    for (const live of modes) {
      for (let from = 0; from <= before; from += 1) readers.push({ from, ...follow(live, offset(from)) });
      readers.push({ from: before, ...follow(live, "now") });
    }
    await Promise.all(readers.map((reader) => reader.upToDate));
    writeFileSync(file("gate"), "");
    await turns(1);
    await call("POST", "/messages", { content: JSON.stringify({ deltas: 5 }) });
    const all = await turns(2);
    await call("DELETE", "");
    for (const reader of readers) assert.deepEqual(await reader.all, all.slice(reader.from), `after ${reader.from}`);
    for (const live of modes) assert.deepEqual(await follow(live, "-1").all, all, "the end is there for who comes late");
  },

  // The server is killed three times while the agent speaks.
  async restart() {
    const applied = new Map(modes.map((live) => [live, []]));
    let [kills, cuts] = [0, 0];
    const tell = () => {
      if (kills === 3 || modes.some((live) => applied.get(live).length < 40 * (kills + 1))) return;
      writeFileSync(file(`reached-${kills}`), "");
      kills += 1;
    };
    const readers = modes.map(async (live) => {
      const own = applied.get(live);
      let from = "-1";
      for (;;) {
        try {
          await subscribe(live, from, (batch) => {
            // The client contract: what was applied is dropped.
            for (const event of batch.items) if (own.length < event.sequenceNumber) own.push(event);
            from = batch.offset;
            tell();
          });
          return;
        } catch (error) {
          assert.equal(live, "sse", `a poll is repeated: ${error}`);
          assert.ok(!(error instanceof assert.AssertionError), error);
          cuts += 1;
        }
      }
    });
    while (!existsSync(file("restarted"))) await sleep(5);
    const all = await turns(1);
    const said = all.filter((event) => event.metadata.eventType === "content_delta").map((event) => event.content);
    assert.deepEqual(said, Array.from({ length: 400 }, (_, number) => `${number} 🦀 `));
    await call("DELETE", "");
    await Promise.all(readers);
    for (const live of modes) assert.deepEqual(applied.get(live), all, live);
    assert.ok(0 < cuts, "it was cut");
  },
};

await stories[story]();
process.exit(0);
