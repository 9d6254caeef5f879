/** The tool by which an agent lets the user choose. Its name is set by the server. */
const survey = "AskUserQuestion";

/** Whether this tool asks the user something, instead of needing a permission. */
export function asksUser(toolName: string): boolean {
  return toolName === survey;
}
