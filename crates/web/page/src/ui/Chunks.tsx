import { memo } from "react";

/** About so much text is laid out by itself: more that comes at the end does not touch it. */
const chunkLength = 8_000;

/** A text that may be long and may grow. It is drawn whole, in chunks that end where a line does, or else a word. */
export const Chunks = memo(function Chunks({ text }: { readonly text: string }) {
  if (text.length <= chunkLength) return text;
  return chunksOf(text).map((chunk, index) => <Chunk key={index} text={chunk} />);
});

const Chunk = memo(function Chunk({ text }: { readonly text: string }) {
  return <span className="chunk">{text}</span>;
});

/** Those before the last one stay as they are when more comes. */
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
