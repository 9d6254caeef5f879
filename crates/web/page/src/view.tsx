import { type Client, createClient } from "@tokenrail/client";
import { preloadAgentMessages, TokenrailProvider } from "@tokenrail/client/react";
import { StrictMode, useEffect, useEffectEvent, useState } from "react";
import { createRoot } from "react-dom/client";

import { base } from "./app/address.ts";
import { App } from "./app/App.tsx";
import { AskForToken } from "./app/AskForToken.tsx";
import { type Door, knock } from "./app/door.ts";
import { givenToken, keepToken } from "./app/token.ts";
import { soon } from "./ui/soon.ts";

const baseUrl = location.origin + base;

interface Key {
  readonly token: string;
  readonly client: Client;
}

function Page({ first }: { readonly first: Key }) {
  const [{ token, client }, setKey] = useState(first);
  // A token counts as valid until the server rejects it. Without a token, each request might count as a failed login.
  const [door, setDoor] = useState<Door>(token ? "open" : "unknown");
  useEffect(() => {
    let gone = false;
    const ask = () => void knock(client, token).then((found) => gone || setDoor(found));
    // With a token, the first paint has priority.
    const cancel = token ? soon(ask) : ask();
    return () => {
      gone = true;
      cancel?.();
    };
  }, [client, token]);
  const take = (given: string) => {
    keepToken(given);
    if (given === token && door === "open") return;
    client.close();
    setKey({ token: given, client: createClient({ baseUrl, token: given }) });
    setDoor("open");
  };
  useGivenToken(take);
  if (door === "unknown") return null;
  if (door !== "open") return <AskForToken wrong={door === "wrong"} onToken={take} />;
  return (
    <TokenrailProvider key={token} client={client}>
      <App />
    </TokenrailProvider>
  );
}

/**
 * If the user opens a URL with a token in a tab that already shows the page, the browser does not load the page again.
 */
function useGivenToken(onToken: (token: string) => void): void {
  const look = useEffectEvent(() => {
    const token = givenToken();
    if (token) onToken(token);
  });
  useEffect(() => {
    const listen = () => look();
    window.addEventListener("hashchange", listen);
    return () => window.removeEventListener("hashchange", listen);
  }, []);
}

/** How long the view waits for the data that it shows: painting once takes less time than painting twice. */
const showMs = 250;

export async function open(token: string, agentId: string | null, fetch: typeof globalThis.fetch): Promise<void> {
  const client = createClient({ baseUrl, token, fetch });
  if (token && agentId) await Promise.race([preloadAgentMessages(client, agentId).messages, pause(showMs)]);
  const root = document.getElementById("root");
  if (!root) return;
  createRoot(root).render(
    <StrictMode>
      <Page first={{ token, client }} />
    </StrictMode>,
  );
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
