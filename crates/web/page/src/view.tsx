import { type Client, createClient } from "@tokenrail/client";
import { preloadAgentMessages, TokenrailProvider } from "@tokenrail/client/react";
import { StrictMode, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";

import { App } from "./app/App.tsx";
import { AskForToken } from "./app/AskForToken.tsx";
import { type Door, knock } from "./app/door.ts";
import { keepToken } from "./app/token.ts";
import { soon } from "./ui/soon.ts";

interface Key {
  readonly token: string;
  readonly client: Client;
}

function Page({ first }: { readonly first: Key }) {
  const [{ token, client }, setKey] = useState(first);
  // A token is taken for good until the server says otherwise. Without one each request might be a failed login.
  const [door, setDoor] = useState<Door>(token ? "open" : "unknown");
  useEffect(() => {
    let gone = false;
    const ask = () => {
      if (token) keepToken(token);
      void knock(client, token).then((found) => gone || setDoor(found));
    };
    // With a token there is a picture to be drawn first.
    const cancel = token ? soon(ask) : ask();
    return () => {
      gone = true;
      cancel?.();
    };
  }, [client, token]);
  if (door === "unknown") return null;
  if (door !== "open") {
    const onToken = (given: string) => {
      setKey({ token: given, client: createClient({ token: given }) });
      setDoor("open");
    };
    return <AskForToken wrong={door === "wrong"} onToken={onToken} />;
  }
  return (
    <TokenrailProvider client={client}>
      <App />
    </TokenrailProvider>
  );
}

/** So long it waits for what it is to show: to draw one picture takes less time than two. */
const showMs = 250;

export async function open(token: string, agentId: string | null, fetch: typeof globalThis.fetch): Promise<void> {
  const client = createClient({ token, fetch });
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
