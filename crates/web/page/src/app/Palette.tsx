import { type ComponentProps, type KeyboardEvent, type RefObject, useEffect, useEffectEvent, useRef, useState } from "react";

import { Failure } from "../ui/Failure.tsx";
import { IconButton } from "../ui/IconButton.tsx";
import { type Command, found, groupsOf } from "./commands.ts";

interface Props {
  /** Called when the palette opens. */
  readonly commandsNow: () => readonly Command[];
}

/** A button and the keys Ctrl-K or Cmd-K, which open a list of all actions and agents. */
export function Palette({ commandsNow }: Props) {
  // The commands of the moment when it was opened: a list that changes would move the selection to another command.
  const [commands, setCommands] = useState<readonly Command[]>();
  const dialog = useRef<HTMLDialogElement>(null);
  // The browser then gives the focus back to the element that had it.
  const close = () => dialog.current?.close();
  const toggle = useEffectEvent(() => (commands ? close() : setCommands(commandsNow())));
  useEffect(() => {
    const listen = (event: globalThis.KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
      event.preventDefault();
      if (!event.repeat) toggle();
    };
    window.addEventListener("keydown", listen);
    return () => window.removeEventListener("keydown", listen);
  }, []);
  return (
    <>
      <IconButton
        icon="command"
        name="Commands"
        title="Commands and agents (Ctrl+K)"
        aria-keyshortcuts="Control+K Meta+K"
        data-testid="palette-button"
        onClick={() => setCommands(commandsNow())}
      />
      {commands && <Choice ref={dialog} commands={commands} close={close} onClosed={() => setCommands(undefined)} />}
    </>
  );
}

const combobox: ComponentProps<"input"> = {
  ...{ type: "text", role: "combobox", autoFocus: true, autoComplete: "off", spellCheck: false },
  ...{ "aria-label": "Search commands and agents", placeholder: "Search commands and agents" },
  ...{ "aria-controls": "palette-list", "aria-autocomplete": "list" },
};

interface ChoiceProps {
  readonly ref: RefObject<HTMLDialogElement | null>;
  readonly commands: readonly Command[];
  readonly close: () => void;
  /** Called when the dialog has closed. */
  readonly onClosed: () => void;
}

function Choice({ ref: dialog, commands, close, onClosed }: ChoiceProps) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [failure, setFailure] = useState<Error>();
  const shown = found(commands, text);
  const chosen = shown[Math.min(at, shown.length - 1)];
  useEffect(() => dialog.current?.showModal(), [dialog]);
  const run = async (command: Command) => {
    setFailure(undefined);
    const opened = dialog.current;
    try {
      await command.run();
      // The palette may have been closed and opened again meanwhile.
      opened?.close();
    } catch (error) {
      setFailure(error as Error);
    }
  };
  const key = (event: KeyboardEvent) => {
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (to !== undefined && shown.length > 0) setAt((to + shown.length) % shown.length);
    else if (event.key === "Enter" && chosen && !event.nativeEvent.isComposing && !event.repeat) void run(chosen);
    else return;
    event.preventDefault();
  };
  return (
    <dialog
      ref={dialog}
      className="dialog palette"
      aria-label="Commands"
      data-testid="palette"
      onClose={onClosed}
      // A click on the backdrop hits the dialog itself.
      onClick={(event) => event.target === dialog.current && close()}
    >
      <div className="palette-inner">
        <input
          {...combobox}
          aria-expanded={shown.length > 0}
          aria-activedescendant={chosen && idOf(chosen)}
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setAt(0);
          }}
          onKeyDown={key}
        />
        {failure && <Failure error={failure} />}
        {shown.length === 0 && <p className="hint">Nothing matches.</p>}
        <Options commands={shown} chosen={chosen} onChoose={(command) => setAt(shown.indexOf(command))} onRun={run} />
      </div>
    </dialog>
  );
}

interface OptionsProps {
  readonly commands: readonly Command[];
  readonly chosen: Command | undefined;
  readonly onChoose: (command: Command) => void;
  readonly onRun: (command: Command) => void;
}

function Options({ commands, chosen, onChoose, onRun }: OptionsProps) {
  useEffect(() => {
    // Newer browsers return a promise, which must not become the return value of the effect.
    document.getElementById(idOf(chosen))?.scrollIntoView?.({ block: "nearest" });
  }, [chosen]);
  return (
    <div id="palette-list" role="listbox" aria-label="Commands and agents">
      {groupsOf(commands).map(([name, grouped]) => (
        <div key={name} role="group" aria-label={name}>
          <div className="palette-group" role="presentation">
            {name}
          </div>
          {grouped.map((command) => (
            <Option key={command.id} command={command} isChosen={command === chosen} onChoose={onChoose} onRun={onRun} />
          ))}
        </div>
      ))}
    </div>
  );
}

interface OptionProps extends Pick<OptionsProps, "onChoose" | "onRun"> {
  readonly command: Command;
  readonly isChosen: boolean;
}

function Option({ command, isChosen, onChoose, onRun }: OptionProps) {
  return (
    <div
      id={idOf(command)}
      className="palette-option"
      role="option"
      aria-selected={isChosen}
      onPointerMove={() => onChoose(command)}
      onClick={() => onRun(command)}
    >
      <span className="palette-label">{command.label}</span>
      <span className="muted">{command.hint}</span>
      {command.keys && <kbd aria-hidden="true">{command.keys}</kbd>}
    </div>
  );
}

function idOf(command: Command | undefined): string {
  return `command-${command?.id}`;
}
