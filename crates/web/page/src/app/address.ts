/** The agent in the URL path, or null on the first page. */
export function agentIn(path: string): string | null {
  return /^\/agents\/([\w-]+)\/?$/.exec(path)?.[1] ?? null;
}
