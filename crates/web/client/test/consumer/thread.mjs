// The library in a thread of its own: it follows an agent to its end, and says what it has heard.
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";
import { TokenrailClient, messagesOf, reduceMessages, textOf } from "@tokenrail/client";
import { WebSocket } from "ws";

if (isMainThread) {
  const [baseUrl, token, id] = process.argv.slice(2);
  const worker = new Worker(new URL(import.meta.url), { workerData: { baseUrl, token, id } });
  worker.on("message", (texts) => console.log(JSON.stringify(texts)));
} else {
  const { baseUrl, token, id } = workerData;
  const client = new TokenrailClient({ baseUrl, token, WebSocket });
  let state;
  if (process.execArgv.includes("--no-experimental-websocket") && globalThis.WebSocket) throw new Error("there is a WebSocket");
  for await (const event of client.follow(id, { untilEnded: true })) state = reduceMessages(state, event);
  parentPort.postMessage(messagesOf(state).map(textOf));
}
