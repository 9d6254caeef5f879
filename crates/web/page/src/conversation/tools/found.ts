// What a search of the web has found: links, and often a text about them.
import { fieldsOf } from "../../content/given.ts";

export interface Link {
  readonly title: string;
  readonly url: string;
  /** Empty if the address has no host. */
  readonly host: string;
}

export interface Found {
  readonly links: readonly Link[];
  /** What else the result says, as Markdown. */
  readonly words: string;
}

/** A longer result is shown as it is. */
const longestFound = 200_000;

/** Claude repeats the query above its links, and below them tells the model how to cite. */
const besides = /^(Web search results for query: .*|REMINDER: .*)$/;

/** The links of a result: those of Claude are lists in JSON, and those of an API are pairs of a title and a URL. */
export function foundIn(text: string): Found | undefined {
  if (text.length > longestFound) return undefined;
  const links: Link[] = [];
  const words: string[] = [];
  let hasLists = false;
  for (const line of text.split("\n")) {
    const list = linksIn(line);
    if (list) links.push(...list);
    else if (!besides.test(line)) words.push(line);
    hasLists ||= list !== undefined;
  }
  if (!hasLists) return pairsIn(text);
  return { links: withoutTwins(links), words: words.join("\n").trim() };
}

function linksIn(line: string): Link[] | undefined {
  const json = /^Links: (\[.*\])\s*$/.exec(line)?.[1];
  if (json === undefined) return undefined;
  try {
    const list: unknown = JSON.parse(json);
    const links = Array.isArray(list) ? list.map((each) => linkOf(fieldsOf(each))) : [undefined];
    return links.every((link) => link !== undefined) ? links : undefined;
  } catch {
    return undefined;
  }
}

function pairsIn(text: string): Found | undefined {
  const links = text.split("\n\n").map((pair) => {
    const [title, url, ...more] = pair.split("\n");
    return more.length === 0 && url !== undefined && /^https?:/i.test(url) ? linkOf({ title, url }) : undefined;
  });
  return links.every((link) => link !== undefined) ? { links: withoutTwins(links), words: "" } : undefined;
}

function linkOf({ title, url }: Readonly<Record<string, unknown>>): Link | undefined {
  if (typeof url !== "string" || !url) return undefined;
  const host = URL.canParse(url) ? new URL(url).hostname : "";
  return { title: typeof title === "string" && title ? title : url, url, host };
}

/** A search can have several lists, which may have the same page. */
function withoutTwins(links: readonly Link[]): Link[] {
  return [...new Map(links.map((link) => [link.url, link])).values()];
}
