// Our client library, as a program uses it that follows agents. It prints each event that `follow` yields, one per line.
// Usage: BASE TOKEN WAY. The ids of the agents come from standard input, one per line.
import { once } from "node:events";
import { registerHooks } from "node:module";
import { text } from "node:stream/consumers";

const [baseUrl, token, way] = process.argv.slice(2);
const agents = (await text(process.stdin)).trim().split("\n");

// Its sources import each other by the names of what they are compiled to.
registerHooks({
  resolve: (name, context, next) => next(name.startsWith(".") ? name.replace(/\.js$/, ".ts") : name, context),
});
const { createClient } = await import("../../crates/web/client/src/index.ts");

// Without a WebSocket, as in Node 20, it reads an event stream for each agent.
if (way === "event-streams") delete globalThis.WebSocket;

const client = createClient({ baseUrl, token });

async function follow(id) {
  for await (const event of client.follow(id)) {
    if (!process.stdout.write(`${JSON.stringify(event)}\n`)) await once(process.stdout, "drain");
  }
  throw new Error(`${id} is followed no more`);
}

await Promise.all(agents.map(follow));
