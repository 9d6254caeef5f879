/**
 * The path below which the server is reached, such as "/agents", or "" for the root. All built files are directly below it.
 * The development server is always at the root.
 */
export const base: string = import.meta.env.DEV ? "" : new URL(/* @vite-ignore */ ".", import.meta.url).pathname.replace(/\/$/, "");

/** The path of an agent's page, or of the first page. */
export function pathOf(agentId: string | null): string {
  return agentId ? `${base}/agents/${encodeURIComponent(agentId)}` : `${base}/`;
}

/** The agent in the URL path, or null on the first page. */
export function agentIn(path: string): string | null {
  return /^\/agents\/([\w-]+)\/?$/.exec(below(path))?.[1] ?? null;
}

/** Whether the page has a view for this URL path. */
export function isView(path: string): boolean {
  return path === base || below(path) === "/" || agentIn(path) !== null;
}

function below(path: string): string {
  return path.startsWith(`${base}/`) ? path.slice(base.length) : path;
}
