// How the page gets access. A link has a login code or the token in its fragment (after `#`), which browsers do not send
// to servers. The page exchanges it for a session: a cookie that every tab sends and no script can read. So the page does
// not keep the token. Only a page of another origin must, because the server starts no session for it.

import { base } from "../connection/address.ts";

const key = "tokenrail-token";
const sessionPath = `${base}/api/session`;

/** What starts a session: a one-time login code, or the token. */
export interface Login {
  readonly kind: "code" | "token";
  readonly secret: string;
}

export interface Access {
  /** The token that requests must send. Empty if they need none, because there is a session. */
  readonly token: string;
  /** What the server has refused. There may be a session nevertheless. */
  readonly refused?: Login["kind"];
  /** The server could not be reached or could not process the login, so it is not known whether the login is right. */
  readonly failed?: true;
}

/** The login in the URL. */
export function givenLogin(): Login | undefined {
  return loginIn(location.hash);
}

/** The login in a pasted text: a whole URL, its fragment, or only the token. */
export function loginPasted(pasted: string): Login | undefined {
  const text = pasted.trim();
  return loginIn(text) ?? (text ? { kind: "token", secret: text } : undefined);
}

function loginIn(url: string): Login | undefined {
  const fragment = new URLSearchParams(url.slice(url.indexOf("#") + 1));
  for (const kind of ["code", "token"] as const) {
    const secret = fragment.get(kind);
    if (secret) return { kind, secret };
  }
  return undefined;
}

/** The access without a login. Whether there is a session, only the server can tell. */
export function keptAccess(): Access {
  return { token: sessionStorage.getItem(key) ?? "" };
}

/** Exchanges a login for a session. The login then leaves the URL. */
export async function logIn(login: Login): Promise<Access> {
  const response = await fetch(sessionPath, { method: "POST", ...proof(login) }).catch(() => undefined);
  const access = outcome(login, response);
  // A reload must find the login again.
  if (!access.failed && givenLogin()) history.replaceState(null, "", location.pathname);
  return access;
}

function proof({ kind, secret }: Login): RequestInit {
  if (kind === "token") return { headers: { Authorization: `Bearer ${secret}` } };
  return { headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code: secret }) };
}

function outcome({ kind, secret }: Login, response: Response | undefined): Access {
  if (response?.ok) {
    sessionStorage.removeItem(key);
    return { token: "" };
  }
  if (response?.status === 403 && kind === "token") {
    sessionStorage.setItem(key, secret);
    return { token: secret };
  }
  if (!response || response.status >= 500) return { ...keptAccess(), failed: true };
  return { ...keptAccess(), refused: kind };
}

/** Ends the session. Returns whether the page has no access any more. */
export async function logOut(): Promise<boolean> {
  // A page that keeps the token has no session, so forgetting the token is enough.
  const hasToken = keptAccess().token !== "";
  const response = await send(sessionPath, { method: "DELETE" }).catch(() => undefined);
  // With 401, the session had ended before.
  const isOut = hasToken || response?.ok === true || response?.status === 401;
  if (isOut) sessionStorage.removeItem(key);
  return isOut;
}

/**
 * Sends a request. The header proves to the server that a page of its own makes a change: a page of another origin cannot
 * add it, although the browser would add the cookie.
 */
export const send: typeof globalThis.fetch = (input, init) => {
  if ((init?.method ?? "GET") === "GET") return fetch(input, init);
  const headers = new Headers(init?.headers);
  headers.set("Tokenrail-Csrf", "1");
  return fetch(input, { ...init, headers });
};
