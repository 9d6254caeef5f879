import { createClient } from "@tokenrail/client";
import { TokenrailProvider } from "@tokenrail/client/react";
import { StrictMode, useEffect, useMemo, useState } from "react";
import { createRoot } from "react-dom/client";

import "./styles/index.css";
import { App } from "./app/App.tsx";
import { AskForToken } from "./app/AskForToken.tsx";
import { keepToken, takeToken } from "./app/token.ts";
import { type Door, knock } from "./app/door.ts";

function Page() {
  const [token, setToken] = useState(takeToken);
  // A token is taken for good until the server says otherwise. Without one each request might be a failed login.
  const [door, setDoor] = useState<Door>(token ? "open" : "unknown");
  const client = useMemo(() => createClient({ token }), [token]);
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
      setToken(given);
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

const root = document.getElementById("root");
if (root)
  createRoot(root).render(
    <StrictMode>
      <Page />
    </StrictMode>,
  );
