import type { KeyboardEvent } from "react";

/** Enter sends and Shift+Enter begins a line, but not while an input method is writing a word. */
export function submitOnEnter(event: KeyboardEvent<HTMLTextAreaElement>): void {
  if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
  event.preventDefault();
  event.currentTarget.form?.requestSubmit();
}

/** Whether a key is a letter of what is being written. */
export function isWriting(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

/** Whether the key for a space presses what has the keyboard. */
export function isPressing(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("button, a[href], summary, [role=button]") !== null;
}
