import { createContext, type ReactNode, useContext, useMemo, useRef } from "react";

import { counted } from "../../ui/format.ts";
import { useKept } from "../kept.tsx";
import { commonIndent, type Diff, diffOf, type Line, pairsOf, splitIndent, visibleOf } from "./diff.ts";
import type { Change } from "./kind.ts";
import { type Layout, layouts, useIsWide, useLayout } from "./layout.ts";

/** Lines that are shown until the user requests the rest. */
const shownLines = 40;

interface Props {
  readonly id: string;
  readonly diff: Diff;
  /** Whether the numbers of the lines in the file are known. */
  readonly hasNumbers: boolean;
  /** The layout, if it is chosen elsewhere. Without it, the diff has a switch of its own. */
  readonly layout?: Layout | undefined;
  /** Distinguishes the diff from others on the screen. */
  readonly label?: string | undefined;
}

/** One change of a file, as removed and added lines. Unchanged lines are folded. */
export function DiffView({ id, diff: { lines }, hasNumbers, layout, label }: Props) {
  const [all, setAll] = useKept(`${id} all`, false);
  const shown = all ? lines.map(() => true) : shownAtFirst(lines);
  const hidden = shown.filter((is) => !is).length;
  return (
    <Frame lines={lines} shown={shown} hasNumbers={hasNumbers} layout={layout} label={label}>
      {(hidden > 0 || (all && shownAtFirst(lines).includes(false))) && (
        <button type="button" className="more" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? "Show less" : `Show all: ${counted(hidden, "more line")}`}
        </button>
      )}
    </Frame>
  );
}

/**
 * A change with all its lines, for a user who must decide about it. The lines are never side by side: a layout that
 * changes after the user has seen the end could hide lines again.
 */
export function WholeDiff({ change, hasNumbers }: { readonly change: Change; readonly hasNumbers: boolean }) {
  const lines = diffOf(change)?.lines ?? [];
  return <Frame lines={lines} shown={lines.map(() => true)} hasNumbers={hasNumbers} layout="unified" isWhole />;
}

/** The lines that are shown before the user requests all. */
export function shownAtFirst(lines: readonly Line[]): boolean[] {
  let count = 0;
  return visibleOf(lines).map((is) => is && ++count <= shownLines);
}

interface FrameProps {
  readonly lines: readonly Line[];
  readonly shown: readonly boolean[];
  readonly hasNumbers: boolean;
  /** Whether something around it scrolls. */
  readonly isWhole?: boolean;
  readonly layout?: Layout | undefined;
  readonly label?: string | undefined;
  readonly children?: ReactNode;
}

/** What all lines begin with. It is not shown, because it would only take room. */
const Indent = createContext("");

/** The lines in the chosen layout, and a switch if there is room for both layouts. */
function Frame({ lines, shown, hasNumbers, isWhole = false, layout: given, label = "Changes", children }: FrameProps) {
  const frame = useRef<HTMLDivElement>(null);
  const [layout] = useLayout();
  // A file that is written has no old text, so there is nothing to compare.
  const canSplit = useIsWide(frame) && !hasNumbers && !given;
  // A user who approves a change sees all of it, with its indentation.
  const indent = useMemo(() => (isWhole ? "" : commonIndent(lines)), [lines, isWhole]);
  const isSplit = given ? given === "split" : canSplit && layout === "split";
  return (
    <div className="diff-frame" ref={frame}>
      {canSplit && <LayoutSwitch />}
      <pre className="diff" tabIndex={isWhole ? undefined : 0} role="group" aria-label={label} data-layout={isSplit ? "split" : "unified"}>
        <Indent value={indent}>
          {isSplit ? <Pairs lines={lines} shown={shown} hasNumbers={hasNumbers} /> : <Lines lines={lines} shown={shown} hasNumbers={hasNumbers} />}
        </Indent>
      </pre>
      {children}
    </div>
  );
}

function LayoutSwitch() {
  const [layout, setLayout] = useLayout();
  return (
    <div className="diff-switch" role="group" aria-label="Layout of the changes">
      {layouts.map((each) => (
        <button key={each} type="button" className="link" aria-pressed={each === layout} onClick={() => setLayout(each)}>
          {each === "split" ? "Split" : "Unified"}
        </button>
      ))}
    </div>
  );
}

function Lines({ lines, shown, hasNumbers }: Pick<FrameProps, "lines" | "shown" | "hasNumbers">) {
  return lines.map((line, at) =>
    shown[at] ? <DiffLine key={at} line={line} hasNumbers={hasNumbers} /> : <Gap key={at} shown={shown} at={at} />,
  );
}

function Pairs({ lines, shown, hasNumbers }: Pick<FrameProps, "lines" | "shown" | "hasNumbers">) {
  const pairs = pairsOf(lines, shown);
  const areShown = pairs.map(({ isShown }) => isShown);
  return pairs.map(({ left, right, isShown }, at) =>
    isShown ? (
      <span key={at} className="diff-pair">
        <DiffLine line={left} hasNumbers={hasNumbers} number={left?.oldNumber} />
        <DiffLine line={right} hasNumbers={hasNumbers} />
      </span>
    ) : (
      <Gap key={at} shown={areShown} at={at} />
    ),
  );
}

/** The number of lines that are hidden here, at the first of them. */
function Gap({ shown, at }: { readonly shown: readonly boolean[]; readonly at: number }) {
  if (at > 0 && !shown[at - 1]) return null;
  const end = shown.indexOf(true, at);
  return (
    <span className="diff-gap">
      ⋯ {counted((end < 0 ? shown.length : end) - at, "line")}
      {"\n"}
    </span>
  );
}

interface LineProps {
  readonly line: Line | undefined;
  readonly hasNumbers: boolean;
  readonly number?: number | undefined;
}

/** A line, or its empty place beside another line. */
function DiffLine({ line, hasNumbers, number = line?.number }: LineProps) {
  const common = useContext(Indent);
  if (!line) return <span className="diff-line" data-mark="none" />;
  const { indent, pieces } = splitIndent(line, common);
  return (
    <span className="diff-line" data-mark={line.mark}>
      {hasNumbers && <span className="diff-number">{number}</span>}
      <span className="diff-mark">{line.mark}</span>
      {indent && <span className="diff-indent">{indent}</span>}
      <span className="diff-text">
        {pieces.map(({ text, isChanged }, at) => (isChanged ? <mark key={at}>{text}</mark> : text))}
        {"\n"}
      </span>
    </span>
  );
}
