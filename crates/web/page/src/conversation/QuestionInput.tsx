import { type KeyboardEvent, type RefObject, useEffectEvent, useLayoutEffect, useMemo, useRef, useState } from "react";

import { fieldsOf, type Given, mainOf, othersIn, unhidden } from "../content/given.ts";
import { type EditKind, kindOf, type ToolKind } from "../content/kind.ts";
import { Highlighted, languageOf } from "../markdown/highlight.tsx";
import { Markdown } from "../markdown/Markdown.tsx";
import type { ToolRow } from "./row.ts";
import { type Diff, diffOf } from "./tools/diff.ts";
import { WholeDiff } from "./tools/DiffView.tsx";
import { usePlaces } from "./tools/places.ts";

/** Browsers round scroll positions, so this many pixels from the end count as the end. */
const nearEnd = 2;

/** A longer plan is shown as it was written, because a long Markdown text is rendered piece by piece. */
const longestPlan = 20_000;

interface Props {
  /** The name of the tool. */
  readonly name: string;
  readonly input: unknown;
  /** The call that needs the permission, if it is known. */
  readonly call?: ToolRow | undefined;
  /** The names of fields that are shown elsewhere. */
  readonly besides: readonly string[];
  /** Whether the user must still scroll before an answer can allow the request. */
  readonly isAskedToScroll: boolean;
  /** Called when the user has seen everything. */
  readonly onSeen: () => void;
}

/** The complete input of the request. Nothing of it is cut. */
export function QuestionInput({ name, input, call, besides, isAskedToScroll, onSeen }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const isBegun = useSeen(box, onSeen);
  const kind = useMemo(() => readable(kindOf(name, input), input), [name, input]);
  const places = usePlaces(call);
  const given = givenBeside(kind, input).filter((field) => !besides.includes(field.name));
  if (given.length === 0 && !kind) return <p className="hint">No input.</p>;
  return (
    <>
      <div
        className="question-input"
        data-kind={kind?.kind}
        ref={box}
        tabIndex={0}
        role="group"
        aria-label="Input"
        onKeyDown={keepKeys}
      >
        {kind?.kind === "edit" &&
          kind.diffs.map((diff, at) => (
            <WholeDiff key={at} diff={diff} place={kind.isWhole ? 0 : places[at]} language={languageOf(kind.path)} />
          ))}
        {kind?.kind === "command" && (
          <pre className="command">
            <code>
              <Highlighted text={kind.command} language="bash" />
            </code>
          </pre>
        )}
        {kind?.kind === "plan" && (
          <div className="words plan">
            <Markdown text={kind.text} />
          </div>
        )}
        {given.length > 0 && <Fields given={given} />}
      </div>
      {isAskedToScroll && (
        <p className="hint" role="status">
          {isBegun ? "Before you can allow this, scroll to the end." : "Before you can allow this, scroll to the top, then to the end."}
        </p>
      )}
    </>
  );
}

/** In this time, the list has measured a new row and has scrolled to its end. What was in view before does not count. */
const placingMs = 150;

/** What the user can do only while looking at the list. */
const gestures = ["wheel", "touchstart", "touchmove", "keydown", "pointerdown"];

/**
 * Calls `onSeen` when the beginning and the end of a box have been in view. The beginning may be above the screen. It
 * counts at once if the user scrolls from there. Returns whether the beginning is in view or has been.
 */
function useSeen(box: RefObject<HTMLElement | null>, onSeen: () => void): boolean {
  const [beginning, setBeginning] = useState<"above" | "in view" | "seen">("in view");
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const hasBegun = beginning === "seen";
  const look = useEffectEvent(() => {
    if (!box.current) return onSeen();
    const edges = inView(box.current);
    if (edges?.isEnd && (edges.isBeginning || hasBegun)) onSeen();
    if (!edges?.isBeginning || hasBegun) clearTimeout(timer.current);
    if (!edges?.isBeginning) timer.current = undefined;
    else timer.current ??= setTimeout(() => setBeginning("seen"), placingMs);
    if (edges && !hasBegun) setBeginning(edges.isBeginning ? "in view" : "above");
  });
  const begin = useEffectEvent(() => {
    if (box.current && inView(box.current)?.isBeginning) setBeginning("seen");
  });
  useLayoutEffect(() => {
    look();
    const element = box.current;
    if (!element) return;
    const leaving = new AbortController();
    const options = { passive: true, signal: leaving.signal };
    const listen = () => look();
    const observer = typeof ResizeObserver === "undefined" ? undefined : new ResizeObserver(listen);
    // A new row becomes visible later, without another event if the list need not scroll.
    const placed = setTimeout(listen, placingMs);
    const list = element.closest(".messages");
    for (const gesture of gestures) (list ?? element).addEventListener(gesture, () => begin(), options);
    for (const each of [element, list]) {
      each?.addEventListener("scroll", listen, options);
      if (each) observer?.observe(each);
    }
    return () => {
      observer?.disconnect();
      leaving.abort();
      clearTimeout(placed);
      clearTimeout(timer.current);
      timer.current = undefined;
    };
  }, [box]);
  return beginning !== "above";
}

/** Which edges of a box are in view. `undefined` if the list has not measured its row, or a static picture covers it. */
function inView(box: HTMLElement): { readonly isBeginning: boolean; readonly isEnd: boolean } | undefined {
  const list = box.closest(".messages");
  const isCovered = list?.parentElement?.querySelector(".first-picture") && !box.closest(".first-picture");
  // The browser for unit tests does not have this function.
  const isHidden = "checkVisibility" in box && !box.checkVisibility({ visibilityProperty: true });
  if (isCovered || isHidden) return undefined;
  const frame = list?.getBoundingClientRect();
  const [top, bottom] = [(frame?.top ?? 0) - nearEnd, (frame?.bottom ?? innerHeight) + nearEnd];
  const isIn = (edge: number) => top <= edge && edge <= bottom;
  const { top: beginning, bottom: end } = box.getBoundingClientRect();
  return { isBeginning: isIn(beginning), isEnd: isIn(end) && isAtEnd(box) };
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

type Readable =
  | { readonly kind: "plan"; readonly text: string }
  | { readonly kind: "command"; readonly command: string }
  | (Omit<EditKind, "changes"> & { readonly diffs: readonly Diff[] });

/** The kind of a call that is easier to read than its fields, without hidden characters. A change without lines is not. */
function readable(kind: ToolKind, input: unknown): Readable | undefined {
  if (kind.kind === "plan" && kind.text.length <= longestPlan) return { kind: "plan", text: unhidden(kind.text) };
  // A command that is a list of words is shown as a list, because the words may contain spaces.
  const isText = typeof fieldsOf(input).command === "string";
  if (kind.kind === "command" && isText && kind.command.trim()) return { kind: "command", command: unhidden(kind.command) };
  if (kind.kind !== "edit") return undefined;
  const diffs = kind.changes.map(({ before, after }) => diffOf({ before: unhidden(before), after: unhidden(after) }));
  if (!diffs.every((diff) => diff?.lines.length)) return undefined;
  return { ...kind, diffs: diffs.filter((diff) => diff !== undefined) };
}

/** The fields that are not visible otherwise. */
function givenBeside(kind: Readable | undefined, input: unknown): Given[] {
  if (kind) {
    const shown = kind.kind === "edit" ? kind.shown : [kind.kind];
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
