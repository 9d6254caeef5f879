import { counted } from "../ui/format.ts";
import { beginningOf } from "./Clipped.tsx";
import { useKept } from "./kept.tsx";

/** Lines of a text that are shown until somebody asks for the rest: more than anybody writes, and less than a file. */
const shownLines = 400;

/** Text as it was written. */
export function LongText({ id, text }: { readonly id: string; readonly text: string }) {
  const [all, setAll] = useKept(`${id} all`, false);
  const short = beginningOf(text, shownLines);
  return (
    <>
      {all ? text : short}
      {short.length < text.length && (
        <button type="button" className="link more-text" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? "Show less" : `Show all ${counted(text.length, "character")}`}
        </button>
      )}
    </>
  );
}
