// The small module that is loaded first. It requests the conversation while the modules that show it are still loading.
import { EarlyAnswers, firstAgents } from "./app/early.ts";
import { applyTheme, keptTheme } from "./app/kept-theme.ts";
import { givenLogin, keptAccess, logIn } from "./app/token.ts";
import { agentIn } from "./connection/address.ts";
import "./styles/index.css";

async function begin(): Promise<void> {
  applyTheme(keptTheme());
  const login = givenLogin();
  const access = login ? await logIn(login) : keptAccess();
  const early = new EarlyAnswers(access.token);
  const agentId = agentIn(location.pathname);
  // These must be exactly the first requests of the client library. Otherwise, it would send its own.
  // The first response also says whether there is a session: no script can read its cookie.
  const answer = early.ask(agentId ? `/api/agents/${agentId}` : firstAgents);
  if (agentId) void early.ask(`/api/agents/${agentId}/messages?since=0&last=60&packed=true`);
  const { open } = await import("./view.tsx");
  // This may run before the page has its body.
  if (document.readyState === "loading") await new Promise((done) => addEventListener("DOMContentLoaded", done));
  await open({ access, agentId, answer, fetch: early.fetch });
}

void begin();
