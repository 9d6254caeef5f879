import type { Access } from "./token.ts";

/**
 * Whether the page has access: `asked` if it has none, `wrong` and `spent` if the server has refused a token or a login
 * code, `unknown` until the server has answered.
 */
export type Door = "open" | "unknown" | "asked" | "wrong" | "spent";

/** Why the server refuses the page's requests. */
export function closed({ token, refused }: Access): Door {
  if (refused === "code") return "spent";
  return refused === "token" || token ? "wrong" : "asked";
}

/** What the response to the page's first request says. Only a refused login closes the door. */
export async function doorOf(answer: Promise<Response>, access: Access): Promise<Door> {
  const status = await answer.then(({ status }) => status).catch(() => undefined);
  return status === 401 ? closed(access) : "open";
}
