import { type RefObject, useEffect } from "react";

import { isWriting } from "../ui/keys.ts";

/** The keys 1 to 9 choose an answer of a card whose answers are in view. If there are several, the first card counts. */
export function useAnswerKeys(card: RefObject<HTMLElement | null>, canAnswer: boolean): void {
  useEffect(() => {
    if (!canAnswer) return;
    const listen = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
      if (!/^[1-9]$/.test(event.key) || isInField(event.target) || document.querySelector("dialog[open]")) return;
      if (!card.current || firstInView() !== card.current) return;
      const control = card.current.querySelector<HTMLElement>(`[data-key="${event.key}"]`);
      if (!control) return;
      event.preventDefault();
      control.focus();
      control.click();
    };
    window.addEventListener("keydown", listen);
    return () => window.removeEventListener("keydown", listen);
  }, [card, canAnswer]);
}

/** A radio button or a checkbox can have the focus, but takes no text. */
function isInField(target: EventTarget | null): boolean {
  return isWriting(target) && !(target instanceof HTMLInputElement && /^(radio|checkbox)$/.test(target.type));
}

function firstInView(): Element | undefined {
  const cards = document.querySelectorAll('.question[data-state="open"]');
  return [...cards].find((card) => !card.closest("[inert]") && isInView(card.querySelector(".question-options")));
}

function isInView(answers: Element | null): boolean {
  if (!answers) return false;
  const frame = answers.closest(".messages")?.getBoundingClientRect();
  const { top, bottom } = answers.getBoundingClientRect();
  return (frame?.top ?? 0) <= top && bottom <= (frame?.bottom ?? innerHeight);
}
