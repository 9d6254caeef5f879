// A program of somebody else's, for the compiler alone: it sees what is in the package.
import { type AgentMessage, type Client, type Message, TokenrailClient, TokenrailError, type Transcript, messagesOf, reduceMessages, textOf } from "@tokenrail/client";
import { TokenrailProvider, useAgentMessages } from "@tokenrail/client/react";
import { createElement } from "react";

const client: Client = new TokenrailClient({ baseUrl: "http://127.0.0.1:7117", token: async () => "secret" });

export async function said(prompt: string): Promise<readonly Message[]> {
  const agent = await client.launch({ type: "demo", prompt });
  let state: Transcript | undefined;
  for await (const event of client.follow(agent.id, { untilEnded: true })) state = reduceMessages(state, event);
  const { turn } = await client.send(agent.id, "and then?").catch((error: unknown) => {
    throw error instanceof TokenrailError && error.retryable ? new Error(`later, in ${error.retryAfterMs} ms`) : error;
  });
  const messages: AgentMessage[] = await client.messages(agent.id, { since: turn });
  return messagesOf(messages.reduce(reduceMessages, state) ?? { last: 0, items: [] });
}

// @ts-expect-error a launch needs a prompt
export const unsaid = () => client.launch({ type: "demo" });

function Conversation({ id }: { id: string }) {
  const { messages, loading } = useAgentMessages(id);
  return createElement("p", null, loading ? "…" : messages.map(textOf).join("\n"));
}

export const App = () => createElement(TokenrailProvider, { client }, createElement(Conversation, { id: "a" }));
