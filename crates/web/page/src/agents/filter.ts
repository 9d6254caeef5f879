import type { Agent } from "@tokenrail/client";

import { hasOwnFolder, ownFolder } from "../agent/own-folder.ts";
import { badgeOf } from "../agent/StatusBadge.tsx";

/** What the user wants to see. An empty text means everything. */
export interface Filter {
  readonly words: string;
  readonly state: string;
  readonly type: string;
  readonly folder: string;
}

export const everything: Filter = { words: "", state: "", type: "", folder: "" };

/** Whether the filter hides something. */
export function isFiltering(filter: Filter): boolean {
  return Object.values(filter).some((wanted) => wanted !== "");
}

/** The properties that have a chip, each with its word for everything. */
export const chips = { state: "Status", type: "Type", folder: "Folder" } as const;
export type Chip = keyof typeof chips;

/** Whether a chip hides something. */
export function chipped(filter: Filter): boolean {
  return (Object.keys(chips) as Chip[]).some((chip) => filter[chip] !== "");
}

/** A longer list would not help. The user can filter by words instead. */
const offeredValues = 50;

const valueOf: Record<Chip, (agent: Agent) => string> = {
  state: (agent) => badgeOf(agent).toLowerCase(),
  type: (agent) => agent.type,
  folder: (agent) => (hasOwnFolder(agent) ? ownFolder : agent.cwd),
};

/** As many folders as the launch form offers. */
const offeredFolders = 20;

/** The folders in which agents work, in the order of the agents, without those that were made for one agent. */
export function foldersOf(agents: readonly Agent[]): string[] {
  const folders = agents.filter((agent) => !agent.readOnly).map(valueOf.folder);
  return [...new Set(folders)].filter((folder) => folder !== ownFolder).slice(0, offeredFolders);
}

export function matches(agent: Agent, { words, ...wanted }: Filter): boolean {
  if (!Object.entries(wanted).every(([chip, value]) => !value || valueOf[chip as Chip](agent) === value)) return false;
  const looked = words.trim().toLowerCase();
  return (
    !looked ||
    [agent.name, agent.type, valueOf.state(agent), agent.prompt, agent.id].some((text) =>
      text?.toLowerCase().includes(looked),
    )
  );
}

/** The values that a chip offers, including the chosen one. */
export function valuesOf(chip: Chip, agents: readonly Agent[], chosen: string): string[] {
  const values = new Set(agents.map(valueOf[chip]));
  if (chosen) values.add(chosen);
  return [...values].sort().slice(0, offeredValues);
}

/** The end of a folder's path, or the whole path if another folder has the same end. */
export function labelOf(value: string, all: readonly string[]): string {
  const end = (path: string) => path.slice(path.lastIndexOf("/") + 1) || path;
  return all.filter((other) => end(other) === end(value)).length > 1 ? value : end(value);
}
