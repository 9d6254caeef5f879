// The token comes behind the `#` of the address, which browsers send to nobody. It leaves the address bar as soon as this
// tab has kept it, and is kept for this tab only.

const key = "tokenrail-token";

/** The token of the address; without one, what this tab has kept. */
export function takeToken(): string {
  return givenToken() ?? sessionStorage.getItem(key) ?? "";
}

/** The token that is in the address. */
export function givenToken(): string | undefined {
  return new URLSearchParams(location.hash.slice(1)).get("token") || undefined;
}

/** Keeps it first: at every moment, whoever loads the page again has it here or in the address. */
export function keepToken(token: string): void {
  sessionStorage.setItem(key, token);
  if (givenToken() !== undefined) history.replaceState(null, "", location.pathname);
}

/** What somebody has pasted: the token, or the whole address with it. */
export function tokenIn(pasted: string): string {
  const text = pasted.trim();
  return new URLSearchParams(text.slice(text.indexOf("#") + 1)).get("token") ?? text;
}
