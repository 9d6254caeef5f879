// The small module that is loaded first. It requests the conversation while the modules that show it are still loading.
import { agentIn } from "./app/address.ts";
import { applyTheme, keptTheme } from "./app/kept-theme.ts";
import { EarlyAnswers } from "./app/early.ts";
import { keepToken, takeToken } from "./app/token.ts";
import "./styles/index.css";

async function begin(): Promise<void> {
  applyTheme(keptTheme());
  const token = takeToken();
  const early = new EarlyAnswers(token);
  const agentId = agentIn(location.pathname);
  // Without a token, each request might count as a failed login.
  if (token && agentId) {
    // These must be the first requests of the client library. Otherwise, it would send its own.
    early.ask(`/api/agents/${agentId}`);
    early.ask(`/api/agents/${agentId}/messages?since=0&last=60&packed=true`);
  }
  const view = import("./view.tsx");
  // The requests are already sent, so this delays nothing.
  if (token) keepToken(token);
  const { open } = await view;
  // This may run before the page has its body.
  if (document.readyState === "loading") await new Promise((done) => addEventListener("DOMContentLoaded", done));
  await open(token, agentId, early.fetch);
}

void begin();
