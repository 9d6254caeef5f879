import { Highlighted } from "../markdown/highlight.tsx";
import { Icon } from "../ui/Icon.tsx";
import { useKept } from "./kept.tsx";
import type { NoticeRow } from "./row.ts";

/** A notice of the agent program: one line, with details on request. */
export function NoticeLine({ row }: { readonly row: NoticeRow }) {
  const [open, setOpen] = useKept(`${row.key} open`, false);
  const preview = previewOf(row.data);
  return (
    <div className="notice" data-empty={(row.name === "message_delta" && !preview) || undefined}>
      <button type="button" className="disclosure" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="chevron" />
        <code>{row.name}</code>
        <span className="notice-preview">{preview}</span>
      </button>
      {open && (
        <pre tabIndex={0} aria-label={row.name}>
          <code>
            <Highlighted text={JSON.stringify(row.data, null, 2) ?? ""} language="json" />
          </code>
        </pre>
      )}
    </div>
  );
}

/** The most useful fields. */
function previewOf(data: unknown): string {
  if (typeof data !== "object" || data === null) return "";
  const names = ["status", "model", "description", "attempt", "error", "error_status", "permissionMode"];
  const fields = data as Record<string, unknown>;
  return names.flatMap((name) => (isSimple(fields[name]) ? [`${name} ${String(fields[name])}`] : [])).join(" · ");
}

function isSimple(value: unknown): boolean {
  return typeof value === "string" || typeof value === "number";
}
