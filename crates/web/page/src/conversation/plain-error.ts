// The messages of APIs in words for the user.
import { fieldsOf } from "../content/given.ts";
import { sentence } from "../ui/format.ts";
import type { ErrorRow } from "./row.ts";

/** A longer message is shown as it is. */
const longest = 20_000;

/** The message of an error without JSON and HTML. */
export function plainError(text: string): string {
  if (text.length > longest) return text;
  const words = withoutPage(withoutJson(text)).trim();
  return words ? sentence(words) : text;
}

/** What happened, and what the agent program printed to stderr before that. `undefined` if it printed nothing. */
export function crashIn({ code, text }: ErrorRow): { readonly how: string; readonly printed: string } | undefined {
  const [, how, printed] = (code === "no_result" && /^(.*? without a result): ([^]+)$/.exec(text)) || [];
  if (how === undefined || printed === undefined) return undefined;
  // A message of an API can be said in words.
  return plainError(printed) === sentence(printed.trim()) || printed.length > longest ? { how: sentence(how), printed } : undefined;
}

/** `API Error: 529 {"error":{"message":"Overloaded"}}` is `API Error: 529: Overloaded`. */
function withoutJson(text: string): string {
  const [start, end] = [text.indexOf("{"), text.lastIndexOf("}") + 1];
  const message = start < end ? messageIn(text.slice(start, end)) : undefined;
  if (message === undefined) return text;
  const before = text.slice(0, start).replace(/[\s:·-]+$/, "");
  return [before && !message.startsWith(before) ? `${before}: ` : "", message, text.slice(end).trimEnd()].join("");
}

function messageIn(json: string): string | undefined {
  try {
    const fields = fieldsOf(JSON.parse(json));
    const { error } = fields;
    const found = [fieldsOf(error).message, error, fields.message, fields.detail].find((each) => typeof each === "string" && each);
    return typeof found === "string" ? found : undefined;
  } catch {
    return undefined;
  }
}

/** A proxy may answer with a page instead of a message. Its title says most. */
function withoutPage(text: string): string {
  const start = text.search(/<!doctype html|<html[\s>]/i);
  if (start < 0) return text;
  const page = text.slice(start);
  const title = /<title[^>]*>([^<]{1,200})<\/title>/i.exec(page)?.[1];
  const words = (title ?? page.replace(/<(script|style)[\s\S]*?<\/\1>/gi, " ").replace(/<[^>]*>/g, " ")).replace(/\s+/g, " ").trim();
  return `${text.slice(0, start).trimEnd()} ${words}`;
}
