import { count, counted } from "../../ui/format.ts";
import type { Totals } from "./files.ts";

/** 4 files +120 −33 */
export function Counts({ totals }: { readonly totals: Totals }) {
  return (
    <span className="counts">
      {counted(totals.files, "file")} <LineCounts added={totals.added} removed={totals.removed} />
    </span>
  );
}

export function LineCounts({ added, removed }: { readonly added: number; readonly removed: number }) {
  return (
    <>
      <span className="plus">+{count(added)}</span> <span className="minus">−{count(removed)}</span>
    </>
  );
}
