// The token comes behind the `#` of the address, which browsers send to nobody. It leaves the address bar at once, and
// is kept for this tab only.

const key = "tokenrail-token";

/** To be kept by whoever takes it, when that holds nothing up. */
export function takeToken(): string {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!given) return sessionStorage.getItem(key) ?? "";
  history.replaceState(null, "", location.pathname);
  return given;
}

export function keepToken(token: string): void {
  sessionStorage.setItem(key, token);
}

/** What somebody has pasted: the token, or the whole address with it. */
export function tokenIn(pasted: string): string {
  const text = pasted.trim();
  return new URLSearchParams(text.slice(text.indexOf("#") + 1)).get("token") ?? text;
}
