import type { ReactNode } from "react";

const marked = /`([^`\n]+)`|\*\*([^*\n]+)\*\*/g;

/** A short text in which code and strong words are marked as in Markdown. Anything else stays as it was written. */
export function Inline({ text }: { readonly text: string }): ReactNode {
  const parts: ReactNode[] = [];
  let from = 0;
  for (const match of text.matchAll(marked)) {
    const [whole, code, strong] = match;
    parts.push(text.slice(from, match.index));
    parts.push(code === undefined ? <strong key={match.index}>{strong}</strong> : <code key={match.index}>{code}</code>);
    from = match.index + whole.length;
  }
  return [...parts, text.slice(from)];
}
