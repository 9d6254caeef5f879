import { type Client, createClient } from "@tokenrail/client";
import { preloadAgentMessages, TokenrailProvider } from "@tokenrail/client/react";
import { StrictMode, useCallback, useEffect, useEffectEvent, useRef, useState } from "react";
import { createRoot, type Root } from "react-dom/client";

import { App } from "./app/App.tsx";
import { AskForToken } from "./app/AskForToken.tsx";
import { askWhenLost, closed, type Door, doorOf, Gate } from "./app/door.ts";
import { type Access, givenLogin, type Login, logIn, send } from "./app/token.ts";
import { base } from "./connection/address.ts";

const baseUrl = location.origin + base;

interface Key {
  readonly access: Access;
  readonly client: Client;
  readonly gate: Gate;
  readonly door: Door;
}

interface Props {
  readonly first: Key;
  /** What the server says, if it has not answered before the first paint. */
  readonly found: Promise<Door>;
}

function Page({ first, found }: Props) {
  const { key, latest, become } = useKey(first);
  const { access, client, gate, door } = key;
  useEffect(() => {
    void found.then((door) => become((key) => (key.door === "unknown" ? { ...key, door } : key)));
  }, [found, become]);
  useEffect(() => askWhenLost(client), [client]);
  useEffect(
    () => gate.onRefused(() => become((key) => (key.door === "open" ? { ...key, door: closed({ token: key.access.token }) } : key))),
    [gate, become],
  );
  const take = async (login: Login): Promise<"failed" | undefined> => {
    const next = await logIn(login);
    if (next.failed) return "failed";
    // The session may have ended while the server processed the login.
    const { access, client, gate, door } = latest.current;
    // An open page goes on as it is: a refused login does not end its session, and a new session replaces it unseen.
    if (door === "open" && next.refused) return undefined;
    gate.begin();
    if (door === "open" && next.token === access.token) return undefined;
    const nextDoor = next.refused ? closed(next) : "open";
    // The same client goes on, because it has the messages that were not delivered.
    const isSame = next.token === access.token;
    if (!isSame) client.close();
    const used = isSame ? { client, gate } : opened(next, send);
    become(() => ({ access: next, ...used, door: nextDoor }));
    return undefined;
  };
  useGivenLogin((login) => void take(login));
  if (door === "unknown") return null;
  if (door !== "open") return <AskForToken door={door} onLogin={take} />;
  return (
    <TokenrailProvider key={access.token} client={client}>
      <App />
    </TokenrailProvider>
  );
}

/** The key, and the newest one for what happens between two renderings. */
function useKey(first: Key) {
  const [key, setKey] = useState(first);
  const latest = useRef(first);
  const become = useCallback((to: (key: Key) => Key) => {
    latest.current = to(latest.current);
    setKey(latest.current);
  }, []);
  return { key, latest, become };
}

function opened({ token }: Access, fetch: typeof globalThis.fetch): Pick<Key, "client" | "gate"> {
  const gate = new Gate(fetch);
  return { gate, client: createClient({ baseUrl, token, fetch: gate.fetch }) };
}

/**
 * If the user opens a URL with a login in a tab that already shows the page, the browser does not load the page again.
 */
function useGivenLogin(onLogin: (login: Login) => void): void {
  const look = useEffectEvent(() => {
    const login = givenLogin();
    if (login) onLogin(login);
  });
  useEffect(() => {
    const listen = () => look();
    window.addEventListener("hashchange", listen);
    return () => window.removeEventListener("hashchange", listen);
  }, []);
}

/** How long the view waits for the data that it shows: painting once takes less time than painting twice. */
const showMs = 250;

interface Beginning {
  readonly access: Access;
  readonly agentId: string | null;
  /** The response to the page's first request. */
  readonly answer: Promise<Response>;
  /** It has the responses to the requests that were sent before this module was loaded. */
  readonly fetch: typeof globalThis.fetch;
}

/** Shows the page. Returns its root, if the document has a place for it. */
export async function open({ access, agentId, answer, fetch }: Beginning): Promise<Root | undefined> {
  const { client, gate } = opened(access, fetch);
  const found = doorOf(answer, access);
  const shown = agentId ? Promise.all([found, preloadAgentMessages(client, agentId).messages]) : found;
  await Promise.race([shown, pause(showMs)]);
  const door = await Promise.race([found, Promise.resolve<Door>("unknown")]);
  const root = document.getElementById("root");
  if (!root) return undefined;
  const page = createRoot(root);
  page.render(
    <StrictMode>
      <Page first={{ access, client, gate, door }} found={found} />
    </StrictMode>,
  );
  return page;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
