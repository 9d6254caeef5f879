import { createContext, Fragment, type ReactNode, useContext, useMemo } from "react";

import { counted } from "../../ui/format.ts";
import { useKept } from "../kept.tsx";
import { type Colours, type Stretch, useColours } from "./colours.ts";
import { commonIndent, type Diff, type Line, type Piece, pairsOf, splitIndent, textOfLine, visibleOf, withoutSmallGaps } from "./diff.ts";
import { type Layout, layouts, useLayout } from "./layout.ts";

/** Lines that are shown until the user requests the rest. */
const shownLines = 40;

interface DiffProps {
  readonly diff: Diff;
  /** How many lines are in the file before these. Absent if the numbers of the lines are not known. */
  readonly place?: number | undefined;
  /** The language of the code, in which it is coloured. */
  readonly language?: string | undefined;
}

interface Props extends DiffProps {
  readonly id: string;
  readonly layout: Layout;
  /** Distinguishes the diff from others on the screen. */
  readonly label?: string | undefined;
}

/** One change of a file, as removed and added lines. Unchanged lines are folded. */
export function DiffView({ id, diff, place, language, layout, label = "Changes" }: Props) {
  const [all, setAll] = useKept(`${id} all`, false);
  const { lines } = diff;
  const atFirst = useMemo(() => shownAtFirst(lines), [lines]);
  const shown = useMemo(() => (all ? lines.map(() => true) : atFirst), [all, lines, atFirst]);
  const hidden = shown.filter((is) => !is).length;
  return (
    <Frame diff={diff} shown={shown} place={place} language={language} layout={layout} label={label}>
      {(hidden > 0 || (all && atFirst.includes(false))) && (
        <button type="button" className="more" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? "Show less" : `Show ${counted(hidden, "more line")}`}
        </button>
      )}
    </Frame>
  );
}

/**
 * A change with all its lines, for a user who must decide about it. The lines are never side by side: a layout that
 * changes after the user has seen the end could hide lines again.
 */
export function WholeDiff({ diff, place, language }: DiffProps) {
  const shown = useMemo(() => diff.lines.map(() => true), [diff]);
  return <Frame diff={diff} shown={shown} place={place} language={language} layout="unified" label="Changes" isWhole />;
}

/** The lines that are shown before the user requests all. */
export function shownAtFirst(lines: readonly Line[]): boolean[] {
  let count = 0;
  return withoutSmallGaps(visibleOf(lines).map((is) => is && ++count <= shownLines));
}

interface FrameProps extends DiffProps {
  readonly shown: readonly boolean[];
  readonly layout: Layout;
  readonly label: string;
  /** Whether something around it scrolls. */
  readonly isWhole?: boolean;
  readonly children?: ReactNode;
}

/** What is the same for all lines. */
interface Common {
  /** What all lines begin with. It is not shown, because it would only take room. */
  readonly indent: string;
  readonly place: number | undefined;
  readonly colours: Colours;
}

const Common = createContext<Common>({ indent: "", place: undefined, colours: new Map() });

/** The lines in the chosen layout. */
function Frame({ diff, shown, place, language, layout, label, isWhole = false, children }: FrameProps) {
  const { lines } = diff;
  const colours = useColours(diff, shown, language);
  // A user who approves a change sees all of it, with its indentation.
  const indent = useMemo(() => (isWhole ? "" : commonIndent(lines)), [lines, isWhole]);
  const common = useMemo(() => ({ indent, place, colours }), [indent, place, colours]);
  return (
    <div className="diff-frame">
      <pre className="diff" tabIndex={isWhole ? undefined : 0} role="group" aria-label={label} data-layout={layout}>
        <Common value={common}>
          {layout === "split" ? <Pairs lines={lines} shown={shown} /> : <Lines lines={lines} shown={shown} />}
        </Common>
      </pre>
      {children}
    </div>
  );
}

/** Chooses how all changes are shown. */
export function LayoutSwitch() {
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

interface LinesProps {
  readonly lines: readonly Line[];
  readonly shown: readonly boolean[];
}

function Lines({ lines, shown }: LinesProps) {
  return lines.map((line, at) => (shown[at] ? <DiffLine key={at} line={line} /> : <Gap key={at} shown={shown} at={at} />));
}

function Pairs({ lines, shown }: LinesProps) {
  const pairs = pairsOf(lines, shown);
  const areShown = pairs.map(({ isShown }) => isShown);
  return pairs.map(({ left, right, isShown }, at) =>
    isShown ? (
      <span key={at} className="diff-pair">
        <DiffLine line={left} number={left?.oldNumber} />
        <DiffLine line={right} />
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
  readonly number?: number | undefined;
}

/** A line, or its empty place beside another line. */
function DiffLine({ line, number = line?.number }: LineProps) {
  const { indent: common, place, colours } = useContext(Common);
  if (!line) return <span className="diff-line" data-mark="none" />;
  const { indent, pieces } = splitIndent(line, common);
  return (
    <span className="diff-line" data-mark={line.mark}>
      {place !== undefined && number !== undefined && <span className="diff-number">{place + number}</span>}
      <span className="diff-mark">{line.mark}</span>
      {indent && <span className="diff-indent">{indent}</span>}
      <span className="diff-text">
        {coloured(line, pieces, colours.get(line) ?? [])}
        {"\n"}
      </span>
    </span>
  );
}

/** The last pieces of a line, with the colours of the whole line. */
function coloured(line: Line, pieces: readonly Piece[], stretches: readonly Stretch[]): ReactNode[] {
  const length = pieces.reduce((sum, { text }) => sum + text.length, 0);
  let at = textOfLine(line).length - length;
  return pieces.map(({ text, isChanged }, index) => {
    const parts = stretches.length > 0 ? colouredText(text, at, stretches) : text;
    at += text.length;
    return isChanged ? <mark key={index}>{parts}</mark> : <Fragment key={index}>{parts}</Fragment>;
  });
}

/** A text that begins at a place of a line, with the colours of the line. */
export function colouredText(text: string, place: number, stretches: readonly Stretch[]): ReactNode[] {
  const parts: ReactNode[] = [];
  let [from, end] = [0, 0];
  for (const { length, names } of stretches) {
    end += length;
    const until = Math.min(text.length, end - place);
    if (until <= from) continue;
    const part = text.slice(from, until);
    parts.push(names ? <span key={from} className={names}>{part}</span> : part);
    from = until;
  }
  return [...parts, text.slice(from)];
}
