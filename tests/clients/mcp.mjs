// The official client of MCP, as an application would use it. Usage: BASE TOKEN FOLDER STORY, run in the folder of the
// client.
import assert from "node:assert/strict";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [base, token, , story] = process.argv.slice(2);
const NEWEST = "2026-07-28";

/** A client. With `answer`, it shows forms to a person. */
async function connected(mode, answer) {
  const capabilities = answer === undefined ? {} : { elicitation: { form: {} } };
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode }, capabilities });
  if (answer !== undefined) client.setRequestHandler("elicitation/create", answer);
  const requestInit = { headers: { Authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${base}/mcp`), { requestInit }));
  return client;
}

/** The structured result of a tool. */
async function tool(client, name, args, options) {
  const result = await client.callTool({ name, arguments: args }, options);
  assert.ok(!result.isError, JSON.stringify(result.content));
  return result.structuredContent;
}
const said = (result) => result.entries.filter(({ kind }) => kind === "text").map(({ text }) => text).join("");
const kinds = (result) => result.entries.map(({ kind }) => kind);

const stories = {
  async talk() {
    for (const [mode, version] of [["legacy", "2025-11-25"], ["auto", NEWEST], [{ pin: NEWEST }, NEWEST]]) {
      const client = await connected(mode);
      assert.equal(client.getNegotiatedProtocolVersion(), version);
      assert.ok(client.getInstructions().includes("launch_agent"));
      assert.equal((await client.listTools()).tools.length, 9);
      const launched = await tool(client, "launch_agent", { agent_type: "fake", prompt: JSON.stringify({ deltas: 5 }) });
      let told = 0;
      const onprogress = () => void told++;
      const done = await tool(client, "wait_for_agent", { agent_id: launched.agent_id }, { onprogress });
      assert.deepEqual([done.reason, said(done)], ["ended", "0 1 2 3 4 "]);
      assert.ok(0 < told, "progress");
      const { resources } = await client.listResources();
      assert.ok((await client.readResource({ uri: resources[0].uri })).contents[0].text.includes("Agent: 0 1 2 3 4 "));
      assert.equal((await client.listPrompts()).prompts.length, 2);
      const caught = await client.getPrompt({ name: "catch_up", arguments: { agent_id: launched.agent_id } });
      assert.equal(caught.messages.length, 2);
      const ref = { type: "ref/prompt", name: "delegate" };
      const { completion } = await client.complete({ ref, argument: { name: "agent_type", value: "fa" } });
      assert.deepEqual(completion.values, ["fake"]);
      await assert.rejects(client.readResource({ uri: "x:é" }));
      await client.close();
    }
  },

  async question() {
    const forms = [];
    const answers = [
      ({ requestedSchema }) => ({ action: "accept", content: { option_id: requestedSchema.properties.option_id.oneOf[0].const } }),
      () => ({ action: "decline" }),
    ];
    const words = [];
    for (const answer of answers) {
      const client = await connected("auto", async ({ params }) => {
        forms.push(params);
        return answer(params);
      });
      const launched = await tool(client, "launch_agent", { agent_type: "asking", prompt: "Clean up" });
      const done = await tool(client, "wait_for_agent", { agent_id: launched.agent_id });
      assert.equal(done.reason, "ended", JSON.stringify(done));
      assert.ok(kinds(done).includes("permission_resolved"), "the whole turn");
      words.push(said(done));
      await client.close();
    }
    assert.equal(forms.length, 2, "each request is asked once");
    assert.ok(forms[0].message.includes("rm -r build"), forms[0].message);
    assert.notEqual(words[0], words[1], "one may, the other may not");
    // A person who closes the form decides nothing, and the client's model is told.
    const client = await connected("auto", async () => ({ action: "cancel" }));
    const launched = await tool(client, "launch_agent", { agent_type: "asking", prompt: "Clean up" });
    const open = await tool(client, "wait_for_agent", { agent_id: launched.agent_id });
    assert.deepEqual([open.reason, open.open_requests.length], ["needs_answer", 1]);
    await client.close();
  },

  async subscription() {
    const client = await connected("auto");
    const launched = await tool(client, "launch_agent", { agent_type: "fake", prompt: JSON.stringify({ mode: "hang" }) });
    const agent_id = launched.agent_id;
    const { resources } = await client.listResources();
    const uri = resources[0].uri;
    assert.ok(uri.includes(agent_id));
    const heard = [];
    let hear;
    client.setNotificationHandler("notifications/resources/updated", ({ params }) => {
      heard.push(params.uri);
      hear?.();
    });
    const subscription = await client.listen({ resourceSubscriptions: [uri], toolsListChanged: true });
    assert.deepEqual(subscription.honoredFilter, { resourceSubscriptions: [uri] });
    const told = new Promise((done) => (hear = done));
    await tool(client, "cancel_agent", { agent_id });
    await told;
    assert.deepEqual([...new Set(heard)], [uri]);
    await subscription.close();
    assert.equal(await subscription.closed, "local");
    await client.close();
  },
};

await stories[story]();
