import type { Agent } from "@tokenrail/client";
import { useState } from "react";

import { isActive } from "../agent/StatusBadge.tsx";
import { titleOf } from "../agent/title.ts";
import { counted } from "../ui/format.ts";
import { Icon, type IconName } from "../ui/Icon.tsx";
import { IconButton } from "../ui/IconButton.tsx";
import type { Act, Failures } from "./bulk.ts";

/** A longer list of failures would hide the agents. */
const shownFailures = 5;

const acts = {
  archive: { verb: "archive", run: (client, { id }) => client.edit(id, { archived: true }) },
  unarchive: { verb: "unarchive", run: (client, { id }) => client.edit(id, { archived: false }) },
  stop: { verb: "stop", run: (client, { id }) => client.cancel(id) },
  delete: { verb: "delete", run: (client, { id }) => client.remove(id) },
} as const satisfies Record<string, Act>;

interface Props {
  readonly chosen: readonly Agent[];
  /** How many of them the filter hides. */
  readonly hidden: number;
  /** Whether the list shows the archived agents. */
  readonly archived: boolean;
  /** Whether an action runs. */
  readonly busy: boolean;
  readonly onAct: (act: Act, agents: readonly Agent[]) => void;
  readonly onEnd: () => void;
}

/** What a user can do with all selected agents at once. */
export function SelectionBar({ chosen, hidden, archived, busy, onAct, onEnd }: Props) {
  const active = chosen.filter(({ status }) => isActive(status));
  const isIdle = busy || chosen.length === 0;
  return (
    <div className="selection" role="group" aria-label="Selected agents" data-testid="selection">
      <span className="selection-count" role="status">
        {counted(chosen.length, "agent")} selected
        {hidden > 0 && `, ${hidden} of them hidden by the filter`}
      </span>
      <IconButton icon="close" name="Stop selecting" disabled={busy} onClick={onEnd} />
      <div className="selection-actions">
        <Action
          icon="archive"
          name={archived ? "Unarchive" : "Archive"}
          disabled={isIdle}
          onClick={() => onAct(archived ? acts.unarchive : acts.archive, chosen)}
        />
        <Action icon="stop" name="Stop" disabled={busy || active.length === 0} onClick={() => onAct(acts.stop, active)} />
        <Delete count={chosen.length} disabled={isIdle} onConfirm={() => onAct(acts.delete, chosen)} />
      </div>
    </div>
  );
}

interface ActionProps {
  readonly icon: IconName;
  readonly name: string;
  readonly disabled: boolean;
  readonly onClick: () => void;
}

function Action({ icon, name, disabled, onClick }: ActionProps) {
  return (
    <button type="button" className="button" disabled={disabled} onClick={onClick}>
      <Icon name={icon} /> {name}
    </button>
  );
}

interface DeleteProps {
  readonly count: number;
  readonly disabled: boolean;
  readonly onConfirm: () => void;
}

/** A deletion needs a second click to confirm it. */
function Delete({ count, disabled, onConfirm }: DeleteProps) {
  const [asked, setAsked] = useState(false);
  if (!asked || disabled) return <Action icon="trash" name="Delete" disabled={disabled} onClick={() => setAsked(true)} />;
  const confirm = () => {
    setAsked(false);
    onConfirm();
  };
  return (
    <button type="button" className="button danger" autoFocus onBlur={() => setAsked(false)} onClick={confirm}>
      Delete {counted(count, "agent")}?
    </button>
  );
}

/** With which agents the last action failed. */
export function FailedAgents({ failures: { verb, failed, of } }: { readonly failures: Failures }) {
  const shown = failed.slice(0, shownFailures).map(({ agent, error }) => `${titleOf(agent)} (${error.message})`);
  const more = failed.length - shown.length;
  return (
    <p className="problem" role="alert">
      <Icon name="alert" />
      <span>
        Cannot {verb} {failed.length} of {counted(of, "agent")}: {shown.join(", ")}
        {more > 0 && `, and ${counted(more, "more agent")}`}
      </span>
    </p>
  );
}
