// The token is in the fragment of the URL (after `#`), which browsers do not send to servers. The page stores it for
// this tab only, and then removes it from the address bar.

const key = "tokenrail-token";

/** The token in the URL, or else the stored token of this tab. */
export function takeToken(): string {
  return givenToken() ?? sessionStorage.getItem(key) ?? "";
}

/** The token in the URL. */
export function givenToken(): string | undefined {
  return new URLSearchParams(location.hash.slice(1)).get("token") || undefined;
}

/** The token is stored before it leaves the URL. So a reload at any moment finds it in one of the two places. */
export function keepToken(token: string): void {
  sessionStorage.setItem(key, token);
  if (givenToken() !== undefined) history.replaceState(null, "", location.pathname);
}

/** The token in a pasted text, which may be the token or a whole URL. */
export function tokenIn(pasted: string): string {
  const text = pasted.trim();
  return new URLSearchParams(text.slice(text.indexOf("#") + 1)).get("token") ?? text;
}
