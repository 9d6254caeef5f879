import { counted } from "../../ui/format.ts";
import { useKept } from "../kept.tsx";
import { type Diff, type Line, textOfLine, visibleOf } from "../tools/diff.ts";

/** Pairs of lines that are shown until the user requests the rest. */
const shownPairs = 40;

/** A line of the old text beside the line of the new text. */
export interface Pair {
  readonly before?: Line | undefined;
  readonly after?: Line | undefined;
}

/** Puts removed lines beside the added lines that follow them. */
export function pairsOf(lines: readonly Line[]): Pair[] {
  const pairs: Pair[] = [];
  let offset = 0;
  for (let at = 0; at < lines.length; ) {
    const line = lines[at];
    if (line?.mark === " ") {
      pairs.push({ before: { ...line, number: line.number - offset }, after: line });
      at++;
      continue;
    }
    const removed = runOf(lines, at, "-");
    const added = runOf(lines, at + removed.length, "+");
    for (let row = 0; row < Math.max(removed.length, added.length); row++)
      pairs.push({ before: removed[row], after: added[row] });
    // The number of an unchanged line is that in the new text.
    offset += added.length - removed.length;
    at += removed.length + added.length;
  }
  return pairs;
}

function runOf(lines: readonly Line[], from: number, mark: string): readonly Line[] {
  let end = from;
  while (lines[end]?.mark === mark) end++;
  return lines.slice(from, end);
}

interface Props {
  readonly id: string;
  readonly diff: Diff;
  readonly hasNumbers: boolean;
}

/** The old text beside the new one. */
export function SplitDiff({ id, diff, hasNumbers }: Props) {
  const [all, setAll] = useKept(`${id} all`, false);
  const visible = visibleOf(diff.lines);
  const pairs = pairsOf(diff.lines.filter((_, at) => all || visible[at]));
  const shown = all ? pairs : pairs.slice(0, shownPairs);
  const hidden = diff.lines.length - shown.reduce((sum, { before, after }) => sum + (before && after && before.mark !== " " ? 2 : 1), 0);
  return (
    <div className="diff-frame">
      <div className="diff split" tabIndex={0} role="group" aria-label="Changes">
        {shown.map(({ before, after }, at) => (
          <div key={at} className="split-pair">
            <Side line={before} hasNumbers={hasNumbers} />
            <Side line={after} hasNumbers={hasNumbers} />
          </div>
        ))}
      </div>
      {(hidden > 0 || all) && (
        <button type="button" className="more" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? "Show less" : `Show all: ${counted(hidden, "more line")}`}
        </button>
      )}
    </div>
  );
}

function Side({ line, hasNumbers }: { readonly line: Line | undefined; readonly hasNumbers: boolean }) {
  if (!line) return <span className="diff-line" data-mark="" />;
  return (
    <span className="diff-line" data-mark={line.mark}>
      {hasNumbers && <span className="diff-number">{line.number}</span>}
      <span className="diff-mark">{line.mark}</span>
      <span className="diff-text">{textOfLine(line)}</span>
    </span>
  );
}
