import type { Agent, Client } from "@tokenrail/client";

import { newAgent, setText } from "../prompt/draft.ts";

/** The fields of the launch form besides the prompt. What is in them is kept like the prompt. */
export const launchFields = ["type", "model", "cwd", "name"] as const;
export type LaunchField = (typeof launchFields)[number];

/** The key of a field's text among the drafts. */
export function draftOf(field: LaunchField): string {
  return `${newAgent} ${field}`;
}

/** Empties the launch form. */
export function clearLaunch(): void {
  setText(newAgent, "");
  for (const field of launchFields) setText(draftOf(field), "");
}

/** Fills the launch form with what an agent was launched with, so that the user can change it and launch another one. */
export async function prepareAgain(client: Client, agent: Agent): Promise<void> {
  // A list shortens long prompts.
  const { id, prompt, type, model, cwd, readOnly } = agent.truncated ? await client.agent(agent.id) : agent;
  setText(newAgent, prompt);
  setText(draftOf("type"), type);
  setText(draftOf("model"), model ?? "");
  // A folder that was made for the agent is not for another one, and that of an imported agent is not here.
  setText(draftOf("cwd"), cwd.includes(id) || readOnly ? "" : cwd);
  setText(draftOf("name"), "");
}
