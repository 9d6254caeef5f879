// What is loaded first, and small: it asks for the conversation while all that shows it is still on its way.
import { agentIn } from "./app/address.ts";
import { EarlyAnswers } from "./app/early.ts";
import { keepToken, takeToken } from "./app/token.ts";
import "./styles/index.css";

async function begin(): Promise<void> {
  const token = takeToken();
  const early = new EarlyAnswers(token);
  const agentId = agentIn(location.pathname);
  // Without a token each request might be a failed login.
  if (token && agentId) {
    // Just as the client library asks first, or it would ask again.
    early.ask(`/api/agents/${agentId}`);
    early.ask(`/api/agents/${agentId}/messages?since=0&last=60&packed=true`);
  }
  const view = import("./view.tsx");
  // While all of it is on its way, this holds nothing up.
  if (token) keepToken(token);
  const { open } = await view;
  // This runs as soon as it is here, which may be before the page has its body.
  if (document.readyState === "loading") await new Promise((done) => addEventListener("DOMContentLoaded", done));
  await open(token, agentId, early.fetch);
}

void begin();
