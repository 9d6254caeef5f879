import { type Client, TokenrailError } from "@tokenrail/client";

/** Whether the token opens: `asked` where there is none and the server wants one; `unknown` until it has said so. */
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
