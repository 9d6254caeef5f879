import { memo } from "react";

/** The approximate length of text in one layout chunk. Text that is added at the end does not affect earlier chunks. */
const chunkLength = 8_000;

/**
 * Renders a text that may be long and may grow. It is rendered completely, in chunks that end at a line, or else at a
 * word.
 */
export const Chunks = memo(function Chunks({ text }: { readonly text: string }) {
  if (text.length <= chunkLength) return text;
  return chunksOf(text).map((chunk, index) => <Chunk key={index} text={chunk} />);
});

const Chunk = memo(function Chunk({ text }: { readonly text: string }) {
  return <span className="chunk">{text}</span>;
});

/** The chunks before the last one stay unchanged when the text grows. */
export function chunksOf(text: string): string[] {
  const chunks: string[] = [];
  let start = 0;
  while (text.length - start > chunkLength) {
    const end = endOf(text, start);
    chunks.push(text.slice(start, end));
    start = end;
  }
  chunks.push(text.slice(start));
  return chunks;
}

function endOf(text: string, start: number): number {
  for (const mark of ["\n", " "]) {
    const at = text.lastIndexOf(mark, start + chunkLength - 1);
    if (at >= start + chunkLength / 2) return at + 1;
  }
  return start + chunkLength;
}
