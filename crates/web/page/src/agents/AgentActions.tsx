import type { Agent, AgentEdit } from "@tokenrail/client";
import { useTokenrail } from "@tokenrail/client/react";
import { type FormEvent, useEffect, useId, useRef, useState } from "react";

import { asName, longestName } from "../agent/edits.ts";
import { titleOf } from "../agent/title.ts";
import { useFailure } from "../connection/failure.ts";
import { prepareAgain } from "../launch/again.ts";
import { useText } from "../prompt/draft.ts";
import { Failure } from "../ui/Failure.tsx";
import { Icon } from "../ui/Icon.tsx";
import { IconButton } from "../ui/IconButton.tsx";
import { SheetDialog } from "../ui/SheetDialog.tsx";

interface Props {
  readonly agent: Agent;
  /** Selects this agent, and lets the user select more. */
  readonly onSelect: () => void;
  /** Opens the launch form, which has what this agent was launched with. */
  readonly onAgain: () => void;
  readonly onClose: () => void;
}

/** What a user can do with one agent of the list: rename, pin, archive, select or delete it. */
export function AgentActions({ agent, onSelect, onAgain, onClose }: Props) {
  const client = useTokenrail();
  const dialog = useRef<HTMLDialogElement>(null);
  const title = useId();
  // What is typed stays if the session ends. The dialog is then gone without having been closed.
  const [typed, keep] = useText(`${agent.id} name in the list`);
  const [failure, setFailure] = useFailure();
  const isBusy = useRef(false);
  useEffect(() => dialog.current?.showModal(), []);
  const close = () => dialog.current?.close();
  const closed = () => {
    keep(() => "");
    onClose();
  };
  const attempt = async (action: () => Promise<unknown>) => {
    // A second click while the first one is being answered does nothing.
    if (isBusy.current) return;
    isBusy.current = true;
    setFailure(undefined);
    await action().then(close, setFailure);
    isBusy.current = false;
  };
  const edit = (change: AgentEdit) => void attempt(() => client.edit(agent.id, change));
  const rename = (name: string) => edit({ name: asName(name) });
  const again = () => void attempt(() => prepareAgain(client, agent).then(onAgain));
  const select = () => {
    onSelect();
    close();
  };
  return (
    <SheetDialog ref={dialog} className="agent-actions" title={title} testId="agent-actions-dialog" onClose={closed}>
      <div className="sheet-inner">
        <div className="sheet-head">
          <h2 id={title}>{titleOf(agent)}</h2>
          <IconButton icon="close" name="Close" onClick={close} />
        </div>
        <NameForm before={typed || (agent.name ?? "")} onType={(name) => keep(() => name)} onName={rename} />
        <div className="agent-actions-buttons">
          <button type="button" className="button" onClick={() => edit({ pinned: !agent.pinned })}>
            <Icon name="pin" /> {agent.pinned ? "Unpin" : "Pin"}
          </button>
          <button type="button" className="button" onClick={() => edit({ archived: !agent.archived })}>
            <Icon name="archive" /> {agent.archived ? "Unarchive" : "Archive"}
          </button>
          <button type="button" className="button" onClick={select}>
            <Icon name="check" /> Select
          </button>
          <button type="button" className="button" data-testid="launch-again" onClick={again}>
            <Icon name="replay" /> Launch again
          </button>
          <Remove onConfirm={() => void attempt(() => client.remove(agent.id))} />
        </div>
        {failure && <Failure error={failure} />}
      </div>
    </SheetDialog>
  );
}

interface NameFormProps {
  readonly before: string;
  readonly onType: (name: string) => void;
  readonly onName: (name: string) => void;
}

function NameForm({ before, onType, onName }: NameFormProps) {
  const [name, setName] = useState(before);
  const rename = (event: FormEvent) => {
    event.preventDefault();
    onName(name);
  };
  return (
    <form className="rename" onSubmit={rename}>
      <label className="field">
        <span>Name</span>
        <input
          type="text"
          value={name}
          maxLength={longestName}
          placeholder="Default: the beginning of the prompt"
          onChange={({ target }) => {
            setName(target.value);
            onType(target.value);
          }}
        />
      </label>
      <button type="submit" className="button primary">
        Rename
      </button>
    </form>
  );
}

/** A deletion needs a second click to confirm it. */
function Remove({ onConfirm }: { readonly onConfirm: () => void }) {
  const [asked, setAsked] = useState(false);
  if (!asked) {
    return (
      <button type="button" className="button danger" onClick={() => setAsked(true)}>
        <Icon name="trash" /> Delete
      </button>
    );
  }
  return (
    <button type="button" className="button danger" autoFocus onBlur={() => setAsked(false)} onClick={onConfirm}>
      Delete this agent?
    </button>
  );
}
