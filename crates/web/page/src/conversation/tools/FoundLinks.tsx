import { linked, Markdown } from "../../markdown/Markdown.tsx";
import type { Found } from "./found.ts";

/** The result of a search of the web. An address that is no link is shown as text. */
export function FoundLinks({ found: { links, words } }: { readonly found: Found }) {
  return (
    <>
      {links.length === 0 && !words && <p className="hint">Nothing found.</p>}
      {links.length > 0 && (
        <ul className="found" aria-label="Results">
          {links.map(({ title, url, host }) => (
            <li key={url}>
              <bdi>{linked(url, title) ?? title}</bdi> <span className="hint">{host || url}</span>
            </li>
          ))}
        </ul>
      )}
      {words && (
        <div className="words plan" dir="auto">
          <Markdown text={words} />
        </div>
      )}
    </>
  );
}
