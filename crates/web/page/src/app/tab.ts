import { useEffect } from "react";

import { base } from "../connection/address.ts";

const product = "Tokenrail";

/** A browser shows about this many characters of a title at most, in its list of tabs. */
const titleLength = 80;

/**
 * Says on the tab what it shows, and how many agents need the user: as a number in its title, and as a dot on its icon.
 * The icons are files of the server, because the page's policy allows no `data:` images.
 */
export function useTab(subject: string | undefined, waiting: number): void {
  useEffect(() => {
    document.title = titleOfTab(subject, waiting);
  }, [subject, waiting]);
  const waits = waiting > 0;
  useEffect(() => {
    const icon = document.querySelector<HTMLLinkElement>("link[rel=icon]");
    if (icon) icon.href = `${base}/${waits ? "icon-waiting" : "icon"}.svg`;
  }, [waits]);
}

function titleOfTab(subject: string | undefined, waiting: number): string {
  const count = waiting > 0 ? `(${waiting}) ` : "";
  const cut = subject && subject.length > titleLength ? `${subject.slice(0, titleLength).trimEnd()}…` : subject;
  return `${count}${cut ? `${cut} · ` : ""}${product}`;
}
