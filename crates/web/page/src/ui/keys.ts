import type { KeyboardEvent } from "react";

/** Enter sends, and Shift+Enter begins a new line. Enter does not send while an input method composes a word. */
export function submitOnEnter(event: KeyboardEvent<HTMLTextAreaElement>): void {
  if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
  event.preventDefault();
  event.currentTarget.form?.requestSubmit();
}

/** Whether the key is input for a text field. */
export function isWriting(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

/** Whether the space bar would press the focused element. */
export function isPressing(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("button, a[href], summary, [role=button]") !== null;
}
