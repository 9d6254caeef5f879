import { type KeyboardEvent, useEffectEvent, useLayoutEffect, useMemo, useRef } from "react";

import { Highlighted } from "../markdown/highlight.tsx";
import { Markdown } from "../markdown/Markdown.tsx";
import { type Given, mainOf, othersIn, unhidden } from "./given.ts";
import { WholeDiff } from "./tools/DiffView.tsx";
import { diffOf } from "./tools/diff.ts";
import { kindOf, type ToolKind } from "./tools/kind.ts";

/** Browsers round scroll positions, so this many pixels from the end count as the end. */
const nearEnd = 2;

/** A longer plan is shown as it was written, because a long Markdown text is rendered piece by piece. */
const longestPlan = 20_000;

interface Props {
  /** The name of the tool. */
  readonly name: string;
  readonly input: unknown;
  /** Called when the user has scrolled to the end, or if everything is visible. */
  readonly onSeen: () => void;
}

/** The complete input of the request. Nothing of it is cut: the box scrolls. */
export function QuestionInput({ name, input, onSeen }: Props) {
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
  const kind = useMemo(() => readable(kindOf(name, input)), [name, input]);
  const given = givenBeside(kind, input);
  if (given.length === 0 && !kind) return <p className="hint">No input.</p>;
  return (
    <div
      className="question-input"
      ref={box}
      tabIndex={0}
      role="group"
      aria-label="Input"
      onKeyDown={keepKeys}
    >
      {kind?.kind === "edit" &&
        kind.changes.map((change, at) => <WholeDiff key={at} change={change} hasNumbers={kind.isWhole} />)}
      {kind?.kind === "plan" && (
        <div className="words plan">
          <Markdown text={kind.text} />
        </div>
      )}
      {given.length > 0 && <Fields given={given} />}
    </div>
  );
}

function Fields({ given }: { readonly given: readonly Given[] }) {
  return (
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
  );
}

type Readable = Extract<ToolKind, { kind: "edit" | "plan" }>;

/** The kind of a call that is easier to read than its fields, without hidden characters. A change without lines is not. */
function readable(kind: ToolKind): Readable | undefined {
  if (kind.kind === "plan" && kind.text.length <= longestPlan) return { ...kind, text: unhidden(kind.text) };
  if (kind.kind !== "edit") return undefined;
  const changes = kind.changes.map(({ before, after }) => ({ before: unhidden(before), after: unhidden(after) }));
  return changes.every((change) => diffOf(change)?.lines.length) ? { ...kind, changes } : undefined;
}

/** The fields that are not visible otherwise. */
function givenBeside(kind: Readable | undefined, input: unknown): Given[] {
  if (kind) {
    const shown = kind.kind === "plan" ? ["plan"] : kind.shown;
    return othersIn(input, { names: shown, text: "" });
  }
  const main = mainOf(input);
  const given = othersIn(input, main);
  // An empty text would look as if nothing happened, although it may empty a file.
  return main ? [{ ...main, text: main.text || '""', name: main.names.join(" → ") || "input" }, ...given] : given;
}

function isAtEnd({ scrollHeight, scrollTop, clientHeight }: HTMLElement): boolean {
  return scrollHeight - scrollTop - clientHeight <= nearEnd;
}

/** These keys scroll the box instead of the conversation. */
function keepKeys(event: KeyboardEvent): void {
  if (event.key === "End" || event.key === "Home" || event.key === " ") event.stopPropagation();
}
