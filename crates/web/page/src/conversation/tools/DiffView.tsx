import { counted } from "../../ui/format.ts";
import { useKept } from "../kept.tsx";
import { type Diff, diffOf, type Line, visibleOf } from "./diff.ts";
import type { Change } from "./kind.ts";

/** Lines that are shown until the user requests the rest. */
const shownLines = 40;

interface Props {
  readonly id: string;
  readonly diff: Diff;
  /** Whether the numbers of the lines in the file are known. */
  readonly hasNumbers: boolean;
}

/** One change of a file, as removed and added lines. Unchanged lines are folded. */
export function DiffView({ id, diff, hasNumbers }: Props) {
  const [all, setAll] = useKept(`${id} all`, false);
  const { lines } = diff;
  const shown = all ? lines.map(() => true) : shownAtFirst(lines);
  const hidden = shown.filter((is) => !is).length;
  return (
    <div className="diff-frame">
      <pre className="diff" tabIndex={0} role="group" aria-label="Changes">
        {lines.map((line, at) =>
          shown[at] ? (
            <DiffLine key={at} line={line} hasNumbers={hasNumbers} />
          ) : at === 0 || shown[at - 1] ? (
            <span key={at} className="diff-gap">
              ⋯ {counted(gapAt(shown, at), "line")}
              {"\n"}
            </span>
          ) : null,
        )}
      </pre>
      {(hidden > 0 || (all && shownAtFirst(lines).includes(false))) && (
        <button type="button" className="more" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? "Show less" : `Show all: ${counted(hidden, "more line")}`}
        </button>
      )}
    </div>
  );
}

/** A change with all its lines, for a user who must decide about it. */
export function WholeDiff({ change, hasNumbers }: { readonly change: Change; readonly hasNumbers: boolean }) {
  return (
    <pre className="diff" role="group" aria-label="Changes">
      {diffOf(change)?.lines.map((line, at) => (
        <DiffLine key={at} line={line} hasNumbers={hasNumbers} />
      ))}
    </pre>
  );
}

/** The lines that are shown before the user requests all. */
export function shownAtFirst(lines: readonly Line[]): boolean[] {
  let count = 0;
  return visibleOf(lines).map((is) => is && ++count <= shownLines);
}

function DiffLine({ line, hasNumbers }: { readonly line: Line; readonly hasNumbers: boolean }) {
  return (
    <span className="diff-line" data-mark={line.mark}>
      {hasNumbers && <span className="diff-number">{line.number}</span>}
      <span className="diff-mark">{line.mark}</span>
      <span className="diff-text">
        {line.pieces.map(({ text, isChanged }, at) => (isChanged ? <mark key={at}>{text}</mark> : text))}
        {"\n"}
      </span>
    </span>
  );
}

function gapAt(shown: readonly boolean[], at: number): number {
  const end = shown.indexOf(true, at);
  return (end < 0 ? shown.length : end) - at;
}
