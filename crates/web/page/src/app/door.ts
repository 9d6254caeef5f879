import { type Client, TokenrailError } from "@tokenrail/client";

/**
 * Whether the page has access: `asked` if there is no token and the server requires one, `unknown` until the server has
 * answered.
 */
export type Door = "open" | "unknown" | "asked" | "wrong";

export async function knock(client: Client, token: string): Promise<Door> {
  try {
    await client.activeAgents();
    return "open";
  } catch (error) {
    const refused = error instanceof TokenrailError && error.code === "unauthenticated";
    if (!refused) return "open";
    return token ? "wrong" : "asked";
  }
}
