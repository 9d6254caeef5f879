import { useEffect } from "react";

import { Chunks } from "../ui/Chunks.tsx";
import { counted } from "../ui/format.ts";
import { beginningOf } from "./Clipped.tsx";
import { useKept } from "./kept.tsx";

/** Lines that are shown until the user requests the rest. This is more than a person writes, and less than a file. */
const shownLines = 400;

/** Whether the search result is only in the hidden part. */
export function isBeyond(text: string, isIn: (text: string) => boolean): boolean {
  return !isIn(beginningOf(text, shownLines));
}

interface Props {
  readonly id: string;
  readonly text: string;
  /** Whether the text still grows. A growing text is shown completely, and what was shown stays visible. */
  readonly growing?: boolean;
}

/** Text without formatting. */
export function LongText({ id, text, growing = false }: Props) {
  const [all, setAll] = useKept(`${id} all`, growing);
  const short = beginningOf(text, shownLines);
  const isLong = short.length < text.length;
  useEffect(() => {
    if (growing && isLong) setAll(true);
  }, [growing, isLong, setAll]);
  return (
    <>
      {all ? <Chunks text={text} /> : short}
      {isLong && !growing && (
        <button type="button" className="link more-text" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? "Show less" : `Show all ${counted(text.length, "character")}`}
        </button>
      )}
    </>
  );
}
