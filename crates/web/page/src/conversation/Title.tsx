import type { Agent } from "@tokenrail/client";
import { useTokenrail } from "@tokenrail/client/react";
import { type FormEvent, useLayoutEffect, useRef, useState } from "react";

import { asName, longestName } from "../agent/edits.ts";
import { titleOf } from "../agent/title.ts";
import { useText } from "../prompt/draft.ts";
import { useAskedTo } from "./orders.ts";

interface Props {
  readonly agent: Agent;
  readonly onFailure: (failure: Error | undefined) => void;
}

/** The title of the agent. A click on it lets the user type another name. */
export function Title({ agent, onFailure }: Props) {
  const isDeleted = agent.deletedAt !== undefined;
  const [typed] = useText(typedName(agent));
  const [isEditing, setEditing] = useState(typed !== "" && !isDeleted);
  const button = useRef<HTMLButtonElement>(null);
  const returns = useRef(false);
  useAskedTo("rename", () => setEditing(!isDeleted));
  useLayoutEffect(() => {
    if (isEditing || !returns.current) return;
    returns.current = false;
    button.current?.focus();
  }, [isEditing]);
  const end = (hadFocus: boolean) => {
    returns.current = hadFocus;
    setEditing(false);
  };
  if (isEditing) return <Rename agent={agent} onFailure={onFailure} onEnd={end} />;
  return (
    <h2 className="head-title" title={agent.prompt} dir="auto">
      {isDeleted ? (
        titleOf(agent)
      ) : (
        <button
          ref={button}
          type="button"
          className="title-button"
          aria-description="Renames the agent"
          data-testid="rename"
          onClick={() => setEditing(true)}
        >
          {titleOf(agent)}
        </button>
      )}
    </h2>
  );
}

/** The key of a name that is typed and not saved. It outlives the field, because the session may end. */
function typedName({ id }: Agent): string {
  return `${id} name`;
}

interface RenameProps extends Props {
  /** `hadFocus`: whether the field had the focus until the end. */
  readonly onEnd: (hadFocus: boolean) => void;
}

/** Saves another name once. */
function useSaving({ agent, onFailure }: Props, end: () => void) {
  const client = useTokenrail();
  const [busy, setBusy] = useState(false);
  // The field also loses the focus because of Enter and Escape.
  const isOver = useRef(false);
  const save = async (name: string) => {
    if (isOver.current) return;
    isOver.current = true;
    onFailure(undefined);
    if (asName(name) !== (agent.name ?? null)) {
      setBusy(true);
      try {
        await client.edit(agent.id, { name: asName(name) });
      } catch (error) {
        onFailure(error as Error);
        setBusy(false);
        isOver.current = false;
        return;
      }
    }
    end();
  };
  const cancel = () => {
    isOver.current = true;
    end();
  };
  return { busy, save, cancel };
}

/** Enter and leaving the field save the name. Escape keeps the old one. A name that could not be saved stays in the field. */
function Rename({ agent, onFailure, onEnd }: RenameProps) {
  const [typed, keep] = useText(typedName(agent));
  const [name, setName] = useState(typed || (agent.name ?? ""));
  const field = useRef<HTMLInputElement>(null);
  const end = () => {
    keep(() => "");
    onEnd(document.activeElement === field.current);
  };
  const { busy, save, cancel } = useSaving({ agent, onFailure }, end);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void save(name);
  };
  return (
    <form className="head-title" onSubmit={submit}>
      <input
        ref={field}
        type="text"
        className="title-input"
        aria-label="Name of the agent"
        data-testid="name"
        autoFocus
        readOnly={busy}
        maxLength={longestName}
        placeholder={titleOf({ ...agent, name: "" })}
        value={name}
        onChange={({ target }) => {
          setName(target.value);
          keep(() => target.value);
        }}
        onFocus={(event) => event.target.select()}
        onBlur={() => void save(name)}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          event.preventDefault();
          cancel();
        }}
      />
    </form>
  );
}
