import { useEffectEvent, useLayoutEffect, useRef } from "react";

import { IconButton } from "./IconButton.tsx";
import { isPressing, isWriting } from "./keys.ts";

/** Calls `action` if the key is pressed outside of a text field. */
export function useShortcut(key: string, action: () => void, active = true): void {
  const act = useEffectEvent(action);
  // Before the browser paints: a key works as soon as what it belongs to can be seen.
  useLayoutEffect(() => {
    if (!active) return;
    const listen = (event: KeyboardEvent) => {
      if (event.key !== key || event.ctrlKey || event.metaKey || event.altKey) return;
      if ((key !== "Escape" && isWriting(event.target)) || event.defaultPrevented) return;
      // A dialog hides what the key would change. Only the dialog of the keys opens and closes with the same key.
      if (key !== "?" && document.querySelector("dialog[open]")) return;
      // If a control has the focus, this key presses the control.
      if (key === " " && isPressing(event.target)) return;
      event.preventDefault();
      act();
    };
    window.addEventListener("keydown", listen);
    return () => window.removeEventListener("keydown", listen);
  }, [key, active]);
}

/** The second key of two must follow within this time. */
const secondKeyMs = 1_500;

/** Calls `action` if these two keys are pressed one after the other, outside of a text field. */
export function useKeyPair(first: string, second: string, action: () => void): void {
  const act = useEffectEvent(action);
  useLayoutEffect(() => {
    let since: number | undefined;
    const listen = (event: KeyboardEvent) => {
      const isSecond = since !== undefined && event.timeStamp - since < secondKeyMs && event.key === second;
      since = undefined;
      if (event.ctrlKey || event.metaKey || event.altKey || isWriting(event.target) || document.querySelector("dialog[open]")) return;
      if (event.key === first) since = event.timeStamp;
      if (!isSecond) return;
      // The second key alone may mean something else.
      event.preventDefault();
      act();
    };
    window.addEventListener("keydown", listen, { capture: true });
    return () => window.removeEventListener("keydown", listen, { capture: true });
  }, [first, second]);
}

const keys = [
  ["Ctrl K", "Commands and agents"],
  ["N", "New agent"],
  ["G N", "Next agent that needs you"],
  ["[, ]", "Previous or next agent in the list"],
  ["/", "Search the conversation"],
  ["J, K", "Next or previous message"],
  ["R", "Raw JSON of the focused message, or of the one under the pointer"],
  ["F", "Changed files"],
  ["1, 2, 3", "Answer a permission request"],
  ["D", "Developer details"],
  ["C", "Write a message"],
  ["End", "Go to the end and keep scrolling with new messages"],
  ["Space", "Play or pause a replay"],
  ["?", "Show this list"],
  ["Esc", "Close the search, the changes, the replay or, on a small screen, the list of agents"],
] as const;

/** The list of keys, and a button that opens it. */
export function Shortcuts() {
  const dialog = useRef<HTMLDialogElement>(null);
  const toggle = () => (dialog.current?.open ? dialog.current.close() : dialog.current?.showModal());
  useShortcut("?", toggle);
  return (
    <>
      <IconButton
        icon="keyboard"
        className="not-on-phone"
        name="Keyboard shortcuts"
        title="Keyboard shortcuts (?)"
        onClick={toggle}
      />
      <dialog ref={dialog} className="dialog" aria-labelledby="keys-title">
        <h2 id="keys-title">Keyboard shortcuts</h2>
        <dl className="keys">
          {keys.map(([key, what]) => (
            <div key={key}>
              <dt>
                {key.split(", ").map((each) => (
                  <kbd key={each}>{each}</kbd>
                ))}
              </dt>
              <dd>{what}</dd>
            </div>
          ))}
        </dl>
        <button type="button" className="button" onClick={toggle}>
          Close
        </button>
      </dialog>
    </>
  );
}
