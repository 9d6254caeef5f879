import { count, counted } from "../../ui/format.ts";
import type { Totals } from "./files.ts";

/** 4 files +120 −33, or 2,000+ files +8,000 −12 if there are more */
export function Counts({ totals }: { readonly totals: Totals }) {
  return (
    <span className="counts">
      {totals.isMore ? `${count(totals.files)}+ files` : counted(totals.files, "file")}{" "}
      <LineCounts added={totals.added} removed={totals.removed} />
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
