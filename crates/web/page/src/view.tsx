import { type Client, createClient } from "@tokenrail/client";
import { TokenrailProvider } from "@tokenrail/client/react";
import { StrictMode, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";

import { App } from "./app/App.tsx";
import { AskForToken } from "./app/AskForToken.tsx";
import { type Door, knock } from "./app/door.ts";
import { keepToken } from "./app/token.ts";

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
    void knock(client, token).then((found) => gone || setDoor(found));
    return () => {
      gone = true;
    };
  }, [client, token]);
  if (door === "unknown") return null;
  if (door !== "open") {
    const onToken = (given: string) => {
      keepToken(given);
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

export function show(client: Client, token: string): void {
  const root = document.getElementById("root");
  if (!root) return;
  createRoot(root).render(
    <StrictMode>
      <Page first={{ token, client }} />
    </StrictMode>,
  );
}
