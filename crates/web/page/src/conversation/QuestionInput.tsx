import { type KeyboardEvent, useEffectEvent, useLayoutEffect, useRef } from "react";

import { Highlighted } from "../markdown/highlight.tsx";
import { type Given, mainOf, othersIn, unhidden } from "./given.ts";

/** Browsers round scroll positions, so this many pixels from the end count as the end. */
const nearEnd = 2;

interface Props {
  readonly input: unknown;
  /** Called when the user has scrolled to the end, or if everything is visible. */
  readonly onSeen: () => void;
}

/** The complete input of the request. Nothing of it is cut: the box scrolls. */
export function QuestionInput({ input, onSeen }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const look = useEffectEvent(() => {
    if (!box.current || isAtEnd(box.current)) onSeen();
  });
  useLayoutEffect(() => {
    look();
    const element = box.current;
    if (!element) return;
    const listen = () => look();
    const observer = typeof ResizeObserver === "undefined" ? undefined : new ResizeObserver(listen);
    observer?.observe(element);
    element.addEventListener("scroll", listen, { passive: true });
    return () => {
      observer?.disconnect();
      element.removeEventListener("scroll", listen);
    };
  }, []);
  const main = mainOf(input);
  const given: Given[] = othersIn(input, main);
  if (main) given.unshift({ ...main, name: main.names.join(" → ") || "input" });
  if (given.length === 0) return <p className="hint">No input.</p>;
  return (
    <div
      className="question-input"
      ref={box}
      tabIndex={0}
      role="group"
      aria-label="Input"
      onKeyDown={keepKeys}
    >
      <dl>
        {given.map(({ name, text, language }) => (
          <div key={name}>
            <dt>{unhidden(name)}</dt>
            <dd>
              <pre>
                <code>
                  <Highlighted text={unhidden(text)} language={language} />
                </code>
              </pre>
            </dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

function isAtEnd({ scrollHeight, scrollTop, clientHeight }: HTMLElement): boolean {
  return scrollHeight - scrollTop - clientHeight <= nearEnd;
}

/** These keys scroll the box instead of the conversation. */
function keepKeys(event: KeyboardEvent): void {
  if (event.key === "End" || event.key === "Home" || event.key === " ") event.stopPropagation();
}
