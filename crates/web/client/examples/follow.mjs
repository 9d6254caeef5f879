// Launches an agent and prints what it says:
// TOKENRAIL_TOKEN=… node examples/follow.mjs [type] [prompt]
import { TokenrailError, createClient } from "@tokenrail/client";

const [type = "demo", prompt = "Show me what Tokenrail does."] = process.argv.slice(2);
const client = createClient({
  baseUrl: process.env.TOKENRAIL_URL ?? "http://127.0.0.1:7117",
  token: process.env.TOKENRAIL_TOKEN,
});
client.connection.subscribe(() => console.error(`[${client.connection.state}]`));

try {
  const agent = await client.launch({ type, prompt });
  for await (const { content, metadata } of client.follow(agent.id, { untilEnded: true })) {
    if (metadata.eventType === "content_delta") process.stdout.write(content);
    if (metadata.eventType === "message") process.stdout.write("\n");
    if (metadata.eventType === "tool_use") console.log(`> ${metadata.toolName} ${JSON.stringify(content.input)}`);
    if (metadata.eventType === "result") console.log(`${metadata.outcome} in ${metadata.durationMs} ms`);
  }
} catch (error) {
  console.error(error instanceof TokenrailError ? `${error.code}: ${error.message}` : error);
  process.exitCode = 1;
}
