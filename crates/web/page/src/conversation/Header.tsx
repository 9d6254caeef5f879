import type { Agent, AgentEdit, Item } from "@tokenrail/client";
import { useTokenrail } from "@tokenrail/client/react";
import { type ReactNode, useRef, useState } from "react";

import { isActive, OriginTag, StatusBadge, whatStops } from "../agent/StatusBadge.tsx";
import { useFailure } from "../connection/failure.ts";
import { usePhase } from "../connection/link.tsx";
import { prepareAgain } from "../launch/again.ts";
import { Failure } from "../ui/Failure.tsx";
import { Icon, type IconName } from "../ui/Icon.tsx";
import { IconButton } from "../ui/IconButton.tsx";
import { phone, useMedia } from "../ui/media.ts";
import { save } from "../ui/save.ts";
import { DetailsSwitch } from "./details.tsx";
import { Facts } from "./Facts.tsx";
import { Sheet } from "./Sheet.tsx";
import { Title } from "./Title.tsx";
import { Toggle } from "./Toggle.tsx";

interface Props {
  readonly agent: Agent;
  readonly items: readonly Item[];
  /** How many events are shown. */
  readonly head: number;
  readonly plain: boolean;
  readonly notices: boolean;
  readonly onPlain: (plain: boolean) => void;
  readonly onNotices: (notices: boolean) => void;
  /** Whether the form for messages is shown. It has the button that stops the agent. */
  readonly canWrite?: boolean;
  readonly onSearch: () => void;
  readonly onReplay?: (() => void) | undefined;
  /** The button that opens the list of changed files. */
  readonly changes?: ReactNode;
  readonly onOpen: (id: string | null) => void;
}

export function Header(props: Props) {
  const { agent, onSearch, onReplay } = props;
  const client = useTokenrail();
  const { failure, setFailure, attempt } = useAttempt();
  const isSmall = useMedia(phone);
  const sheet = useRef<HTMLDialogElement>(null);
  const closing = (action: () => void) => () => {
    if (sheet.current?.open) sheet.current.close();
    action();
  };
  const active = isActive(agent.status);
  const exported = async () => save(await client.exportAgent(agent.id), `tokenrail-${agent.id}.json`);
  const again = () => prepareAgain(client, agent).then(() => props.onOpen(null));
  const facts = <Facts agent={agent} items={props.items} head={props.head} isWhole={isSmall} />;
  const stop = active && <Stop agent={agent} onStop={closing(attempt(() => client.cancel(agent.id)))} />;
  const isStopFirst = !isSmall && !props.canWrite;
  const first = (
    <>
      {isStopFirst && stop}
      <Action icon="search" name="Search" hint="Search (/)" onClick={closing(onSearch)} />
      {!active && onReplay && <Action icon="replay" name="Replay in this browser" onClick={closing(onReplay)} />}
    </>
  );
  const others = (
    <>
      {!active && <Action icon="download" name="Export" hint="Export as a file" onClick={closing(attempt(exported))} />}
      <Views {...props} />
      <Action icon="plus" name="Launch again" hint="Fill in the launch form with the same type, folder, model and prompt" onClick={closing(attempt(again))} />
      {!agent.deletedAt && <Places agent={agent} attempt={attempt} />}
      <Remove agent={agent} onRemoved={() => props.onOpen(null)} attempt={attempt} />
    </>
  );
  return (
    <header className="head">
      <div className="head-line">
        <Title agent={agent} onFailure={setFailure} />
        <StatusBadge agent={agent} />
        <OriginTag agent={agent} />
        {props.changes}
        <div className="head-actions" role="group" aria-label="Actions">
          {!isSmall && first}
          <Sheet ref={sheet} name={isSmall ? "Details" : "More"}>
            <div className="sheet-actions" role="group" aria-label="More actions">
              {!isStopFirst && stop}
              {isSmall && first}
              {others}
            </div>
            {/* While the sheet is open, it covers the header. */}
            {failure && <Failure error={failure} />}
            {isSmall && facts}
          </Sheet>
        </div>
      </div>
      {!isSmall && facts}
      {failure && <Failure error={failure} />}
    </header>
  );
}

/** Actions that may fail, and how the last one failed. */
function useAttempt() {
  const [failure, setFailure] = useFailure();
  const attempt = (action: () => Promise<unknown>) => async () => {
    setFailure(undefined);
    await action().catch(setFailure);
  };
  return { failure, setFailure, attempt };
}

/** What of the conversation is shown. */
function Views({ plain, notices, onPlain, onNotices }: Pick<Props, "plain" | "notices" | "onPlain" | "onNotices">) {
  return (
    <>
      <Toggle icon="text" id="text" name="Plain text" on={plain} set={onPlain} />
      <Toggle
        icon="terminal"
        id="terminal"
        name="Notices"
        hint="Notices: events of the agent that Tokenrail does not interpret, and events that Tokenrail adds"
        on={notices}
        set={onNotices}
      />
      <DetailsSwitch />
    </>
  );
}

function Stop({ agent, onStop }: { readonly agent: Agent; readonly onStop: () => void }) {
  const isAway = usePhase() === "away";
  return (
    <button
      type="button"
      className="button danger"
      data-testid="cancel"
      title={isAway ? "The server cannot be reached" : whatStops(agent)}
      disabled={isAway}
      onClick={onStop}
    >
      <Icon name="stop" /> Stop
    </button>
  );
}

interface ActionProps {
  readonly icon: IconName;
  readonly name: string;
  readonly hint?: string;
  readonly onClick: () => void;
}

function Action({ icon, name, hint = name, onClick }: ActionProps) {
  return (
    <IconButton icon={icon} name={name} title={hint} data-testid={`action-${icon}`} onClick={onClick}>
      <span className="action-name">{name}</span>
    </IconButton>
  );
}

interface AttemptProps {
  readonly agent: Agent;
  readonly attempt: (action: () => Promise<unknown>) => () => void;
}

/** The place of the agent in the list. */
function Places({ agent: { id, pinned, archived }, attempt }: AttemptProps) {
  const client = useTokenrail();
  const edit = (change: AgentEdit) => attempt(() => client.edit(id, change))();
  return (
    <>
      <Toggle icon="pin" id="pin" name="Pin" on={pinned} set={(pinned) => edit({ pinned })} />
      <Toggle icon="archive" id="archive" name="Archive" on={archived} set={(archived) => edit({ archived })} />
    </>
  );
}

/** A deletion needs a second click to confirm it. */
function Remove({ agent, onRemoved, attempt }: AttemptProps & { readonly onRemoved: () => void }) {
  const client = useTokenrail();
  const [asked, setAsked] = useState(false);
  const remove = attempt(async () => {
    await client.remove(agent.id);
    onRemoved();
  });
  if (agent.deletedAt) return null;
  const hint = "Delete: stop the agent and remove it from the list. Its history stays on the server";
  if (!asked) return <Action icon="trash" name="Delete" hint={hint} onClick={() => setAsked(true)} />;
  return (
    <button type="button" className="button danger" autoFocus onBlur={() => setAsked(false)} onClick={remove}>
      Delete this agent?
    </button>
  );
}
