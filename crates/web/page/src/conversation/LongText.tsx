import { useEffect } from "react";

import { Chunks } from "../ui/Chunks.tsx";
import { counted } from "../ui/format.ts";
import { beginningOf } from "./Clipped.tsx";
import { useKept } from "./kept.tsx";

/** Lines of a text that are shown until somebody asks for the rest: more than anybody writes, and less than a file. */
const shownLines = 400;

/** Whether what is looked for is only in the part that has to be asked for. */
export function isBeyond(text: string, isIn: (text: string) => boolean): boolean {
  return !isIn(beginningOf(text, shownLines));
}

interface Props {
  readonly id: string;
  readonly text: string;
  /** More of it is coming: whoever watches it wants to see that, and what was seen stays. */
  readonly growing?: boolean;
}

/** Text as it was written. */
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
