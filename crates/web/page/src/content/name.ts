// The names of tools in words for the user.

const names: Readonly<Record<string, string>> = {
  AskUserQuestion: "Question",
  ExitPlanMode: "Plan",
  LS: "List",
  MultiEdit: "Edit",
  NotebookEdit: "Edit notebook",
  TodoWrite: "To-do list",
  WebFetch: "Fetch",
  WebSearch: "Web search",
};

/** A tool of an MCP server has its name and that of the server: `mcp__github__create_issue` is "github: create issue". */
export function nameOf(tool: string): string {
  if (Object.hasOwn(names, tool)) return names[tool] ?? tool;
  const [, server, name] = /^mcp__(.+?)__(.+)$/.exec(tool) ?? [];
  return server && name ? `${server}: ${name.replaceAll("_", " ")}` : inWords(tool);
}

/** `CronCreate` is "Cron create". A name of another form stays as it is. */
function inWords(tool: string): string {
  if (!/^([A-Z][a-z]+){2,}$/.test(tool)) return tool;
  return tool.replace(/(?!^)[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
