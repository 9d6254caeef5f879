import { type FormEvent, type KeyboardEvent, useId, useRef, useState } from "react";

import { submitOnEnter } from "../ui/keys.ts";
import { useKept } from "./kept.tsx";
import { useTyped } from "./typed.ts";

interface Props {
  /** Identifies the form when its row is rendered again. */
  readonly id: string;
  /** The label of the option that rejects. */
  readonly label: string;
  readonly disabled: boolean;
  readonly onReject: (note: string) => void;
}

/** Rejects with a note to the agent. The field is closed at first, because most rejections need no note. */
export function NoteForm({ id, label, disabled, onReject }: Props) {
  const [note, setNote] = useTyped(`${id} note`, "", !disabled);
  const [open, setOpen] = useKept(`${id} note open`, note !== "");
  // A field that comes back because the user scrolls must not take the focus.
  const [isNew, setNew] = useState(false);
  const control = useRef<HTMLButtonElement>(null);
  const field = useId();
  const close = () => {
    setOpen(false);
    control.current?.focus();
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (note.trim()) onReject(note.trim());
  };
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.key !== "Escape") return submitOnEnter(event);
    event.stopPropagation();
    close();
  };
  return (
    <div className="note">
      <button
        ref={control}
        type="button"
        className="link"
        data-testid="with-note"
        aria-expanded={open}
        disabled={disabled}
        onClick={() => {
          if (open) return close();
          setNew(true);
          setOpen(true);
        }}
      >
        {open ? "Close the note" : `${label} with a note…`}
      </button>
      {open && (
        <form className="note-form" onSubmit={submit}>
          <label htmlFor={field}>Note to the agent</label>
          <textarea
            id={field}
            name="note"
            rows={2}
            value={note}
            disabled={disabled}
            placeholder="What to do instead"
            autoFocus={isNew}
            onChange={(event) => setNote(event.target.value)}
            onKeyDown={onKeyDown}
          />
          <button type="submit" className="button" data-testid="send-note" disabled={disabled || !note.trim()}>
            {label} and send the note
          </button>
        </form>
      )}
    </div>
  );
}
