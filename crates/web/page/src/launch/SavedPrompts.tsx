import { type KeyboardEvent, useState } from "react";

import { IconButton } from "../ui/IconButton.tsx";
import { savedLength, savedNameLength, savedPrompts, useSavedPrompts } from "./saved-prompts.ts";

interface Props {
  readonly prompt: string;
  readonly onPick: (prompt: string) => void;
}

/** Buttons that fill in a saved prompt, and a field that saves the current one. */
export function SavedPrompts({ prompt, onPick }: Props) {
  const { prompts, save, forget } = useSavedPrompts();
  const [isNaming, setNaming] = useState(false);
  const canSave = prompt.trim() !== "" && prompt.length <= savedLength;
  if (prompts.length === 0 && !canSave && !isNaming) return null;
  return (
    <div className="saved-prompts" role="group" aria-label="Saved prompts">
      {prompts.map((each) => (
        <span key={each.name} className="saved-prompt">
          <button type="button" className="link" title={each.prompt} onClick={() => onPick(each.prompt)}>
            {each.name}
          </button>
          <IconButton
            icon="close"
            className="small"
            name={`Delete the saved prompt ${each.name}`}
            onClick={() => forget(each.name)}
          />
        </span>
      ))}
      {isNaming ? (
        <NameField isFull={prompts.length >= savedPrompts} onName={(name) => save({ name, prompt })} onEnd={() => setNaming(false)} />
      ) : (
        canSave && (
          <button type="button" className="link" data-testid="save-prompt" onClick={() => setNaming(true)}>
            Save this prompt…
          </button>
        )
      )}
    </div>
  );
}

interface NameProps {
  /** Whether the oldest prompt is forgotten if the name is new. */
  readonly isFull: boolean;
  /** Returns whether it is saved. */
  readonly onName: (name: string) => boolean;
  readonly onEnd: () => void;
}

/** It is inside of the launch form, so it is not a form of its own. */
function NameField({ isFull, onName, onEnd }: NameProps) {
  const [name, setName] = useState("");
  const [hasFailed, setFailed] = useState(false);
  const save = () => {
    if (!name.trim()) return;
    if (onName(name.trim())) onEnd();
    else setFailed(true);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") onEnd();
    else if (event.key === "Enter" && !event.nativeEvent.isComposing) save();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <span className="saved-prompt">
      <input
        type="text"
        aria-label="Name of the saved prompt"
        placeholder="Name"
        autoFocus
        autoComplete="off"
        maxLength={savedNameLength}
        value={name}
        onChange={(event) => setName(event.target.value)}
        onKeyDown={onKeyDown}
      />
      <button type="button" className="button" disabled={!name.trim()} onClick={save}>
        Save
      </button>
      {isFull && (
        <span className="hint">
          You have {savedPrompts} saved prompts, the maximum. If one of them already has this name, saving overwrites it. Otherwise,
          saving overwrites the oldest one.
        </span>
      )}
      {hasFailed && (
        <span className="field-problem" role="alert">
          The browser cannot store the prompt. Allow this site to store data, or delete a saved prompt.
        </span>
      )}
    </span>
  );
}
