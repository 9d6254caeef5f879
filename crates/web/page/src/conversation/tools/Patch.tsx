import { Chunks } from "../../ui/Chunks.tsx";

/** More lines are shown without colours, because each coloured line is an element. */
const mostLines = 2_000;

/** A patch as it was written, with coloured lines. */
export function Patch({ text }: { readonly text: string }) {
  const lines = text.split("\n");
  if (lines.length > mostLines) return <Chunks text={text} />;
  return lines.map((line, at) => (
    <span key={at} className="patch-line" data-mark={markOf(line)}>
      {line}
      {at < lines.length - 1 && "\n"}
    </span>
  ));
}

function markOf(line: string): string | undefined {
  if (/^(@@|\*\*\*|diff --git |--- |\+\+\+ )/.test(line)) return "@";
  return line.startsWith("+") || line.startsWith("-") ? line[0] : undefined;
}
