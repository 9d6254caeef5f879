// What is loaded first: it asks for the conversation while the view that shows it is still on its way.
import { createClient } from "@tokenrail/client";
import { preloadAgentMessages } from "@tokenrail/client/react";

import { agentIn } from "./app/route.ts";
import { keepToken, takeToken } from "./app/token.ts";
import "./styles/index.css";

/** So long it waits for what it is to show: to draw one picture takes less time than two. */
const showMs = 120;

async function begin(): Promise<void> {
  const token = takeToken();
  const client = createClient({ token });
  const agentId = agentIn(location.pathname);
  // Without a token each request might be a failed login.
  const asked = token && agentId ? preloadAgentMessages(client, agentId) : undefined;
  if (token) keepToken(token);
  const { show } = await import("./view.tsx");
  await Promise.race([asked?.messages, pause(showMs)]);
  show(client, token);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

void begin();
