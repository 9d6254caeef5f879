import type { Agent, Client } from "@tokenrail/client";

import { badgeOf, isActive, needsYou, originOf } from "../agent/StatusBadge.tsx";
import { titleOf } from "../agent/title.ts";
import { askTo } from "../conversation/orders.ts";
import { prepareAgain } from "../launch/again.ts";
import { save } from "../ui/save.ts";
import { type Theme, themes } from "./kept-theme.ts";

/** Something that the palette offers. */
export interface Command {
  readonly id: string;
  readonly label: string;
  /** A few words beside the label that say more. The user can search for them too. It may be empty. */
  readonly hint: string;
  /** The keys that do the same without the palette. */
  readonly keys?: string;
  readonly group: "Actions" | "Agents";
  readonly run: () => unknown;
}

/** A longer list is not read to its end. The user writes more words instead. */
const shownCommands = 50;

interface Context {
  readonly client: Client;
  readonly agents: readonly Agent[];
  readonly agentId: string | null;
  /** The agent on screen. It need not be in the list: it may be archived, or too old. */
  readonly shown?: Agent | undefined;
  readonly onOpen: (id: string | null) => void;
  readonly onTheme: (theme: Theme) => void;
}

type Action = Omit<Command, "group"> | undefined | false;

/** All commands: first the actions, then the agents, newest first. */
export function commandsOf({ client, agents, agentId, shown, onOpen, onTheme }: Context): Command[] {
  const current = shown?.id === agentId ? shown : agents.find(({ id }) => id === agentId);
  const next = nextThatNeedsYou(agents, agentId);
  const actions: Action[] = [
    next && { id: "next", label: "Next agent that needs you", hint: titleOf(next), keys: "G N", run: () => onOpen(next.id) },
    { id: "new", label: "New agent", hint: "", keys: "N", run: () => onOpen(null) },
    ...(current ? viewsOf(current) : []),
    current &&
      isActive(current.status) && {
        ...{ id: "cancel", label: "Stop the running turn", hint: current.queued > 0 ? "withdraws the queued messages too" : "" },
        run: () => client.cancel(current.id),
      },
    current &&
      !isActive(current.status) && {
        ...{ id: "export", label: "Export this agent", hint: "download a file" },
        run: async () => save(await client.exportAgent(current.id), `tokenrail-${current.id}.json`),
      },
    current && {
      ...{ id: "again", label: "Launch again…", hint: "fills in the launch form with the same type, folder, model and prompt" },
      run: () => prepareAgain(client, current).then(() => onOpen(null)),
    },
    ...(current && !current.deletedAt ? editsOf(client, current) : []),
    ...themes.map((theme) => ({
      ...{ id: `theme-${theme}`, label: `Theme: ${theme}`, hint: "" },
      run: () => onTheme(theme),
    })),
  ];
  return [
    ...actions.filter((action) => !!action).map((action) => ({ ...action, group: "Actions" as const })),
    ...agents.map((agent) => ({
      ...{ id: agent.id, label: titleOf(agent), hint: hintOf(agent), group: "Agents" as const },
      run: () => onOpen(agent.id),
    })),
  ];
}

/** What the conversation on screen can show. */
function viewsOf({ status, readOnly }: Agent): Action[] {
  return [
    { id: "search", label: "Search this conversation", hint: "", keys: "/", run: () => askTo("search") },
    !readOnly && { id: "changes", label: "Changed files", hint: "", keys: "F", run: () => askTo("changes") },
    !isActive(status) && { id: "replay", label: "Replay in this browser", hint: "", run: () => askTo("replay") },
    { id: "details", label: "Developer details", hint: "", keys: "D", run: () => askTo("details") },
  ];
}

/** What distinguishes an agent from others with the same title. */
function hintOf(agent: Agent): string {
  return [originOf(agent), agent.type, badgeOf(agent).toLowerCase()].filter(Boolean).join(" · ");
}

/** What changes the name of an agent, or its place in the list. */
function editsOf(client: Client, { id, pinned, archived }: Agent): Action[] {
  const [pin, archive] = [pinned ? "Unpin" : "Pin", archived ? "Unarchive" : "Archive"];
  const shelf = archived ? "show it in the list again" : "leave it out of the list";
  return [
    { id: "rename", label: "Rename this agent", hint: "", run: () => askTo("rename") },
    { id: "pin", label: `${pin} this agent`, hint: "", run: () => client.edit(id, { pinned: !pinned }) },
    { id: "archive", label: `${archive} this agent`, hint: shelf, run: () => client.edit(id, { archived: !archived }) },
  ];
}

/**
 * The commands that have all of these words. Those whose label begins with them come first, and the groups are in the order
 * of their first commands.
 */
export function found(commands: readonly Command[], text: string): Command[] {
  const looked = text.trim().toLowerCase();
  const words = looked.split(/\s+/);
  const begins = ({ label }: Command) => label.toLowerCase().startsWith(looked);
  const matching = commands.filter(({ label, hint, id }) => {
    const all = `${label} ${hint} ${id}`.toLowerCase();
    return words.every((word) => all.includes(word));
  });
  const sorted = [...matching.filter(begins), ...matching.filter((command) => !begins(command))].slice(0, shownCommands);
  return groupsOf(sorted).flatMap(([, commands]) => commands);
}

/** The groups of these commands, in the order of their first ones. */
export function groupsOf(commands: readonly Command[]): [name: Command["group"], commands: Command[]][] {
  const groups = new Map<Command["group"], Command[]>();
  for (const command of commands) groups.set(command.group, [...(groups.get(command.group) ?? []), command]);
  return [...groups];
}

/** After the current agent, and from the beginning again after the last one. */
export function nextThatNeedsYou(agents: readonly Agent[], agentId: string | null): Agent | undefined {
  const at = agents.findIndex(({ id }) => id === agentId);
  return [...agents.slice(at + 1), ...agents.slice(0, Math.max(0, at))].find(needsYou);
}
