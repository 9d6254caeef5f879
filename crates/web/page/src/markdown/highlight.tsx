import type { ElementContent, RootContent } from "hast";
import { memo, type ReactNode, useEffect, useSyncExternalStore } from "react";

import { Chunks } from "../ui/Chunks.tsx";
import { soon } from "../ui/soon.ts";

type Lowlight = (typeof import("./languages.ts"))["lowlight"];

/** A longer text stays plain: to colour it would hold up the page for longer than one frame. */
const longestCode = 20_000;

/**
 * Grammars go back over some stretches for each of their characters, so that code which nobody would write stops the page
 * for seconds: most of them over a word, that of C over whatever could be the head of a function. Such code stays plain.
 */
const longestWord = 300;
const longestHead = 400;
const c = /^[ch]$/i;

export function isTame(text: string, language = ""): boolean {
  const shorter = (ends: RegExp, most: number) => text.split(ends).every((stretch) => stretch.length <= most);
  return shorter(/\W+/, longestWord) && (!c.test(language) || shorter(/[^\w\s*&:]+/, longestHead));
}

interface Props {
  readonly text: string;
  readonly language?: string | undefined;
}

/** Code in colours, where the language is known. It is plain until the colours have been loaded, and as large. */
export const Highlighted = memo(function Highlighted({ text, language }: Props): ReactNode {
  const lowlight = useSyncExternalStore(subscribe, () => loaded);
  const coloured = Boolean(language) && text.length <= longestCode && isTame(text, language);
  useEffect(() => (coloured ? soon(load) : undefined), [coloured]);
  if (!coloured) return <Chunks text={text} />;
  if (!language || !lowlight?.registered(language)) return text;
  return lowlight.highlight(language, text).children.map(shown);
});

let loaded: Lowlight | undefined;
let loading: Promise<void> | undefined;
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Where they cannot be had, code stays plain, and the next one tries again. */
function load(): void {
  loading ??= import("./languages.ts").then(
    ({ lowlight }) => {
      loaded = lowlight;
      for (const listener of [...listeners]) listener();
    },
    () => {
      loading = undefined;
    },
  );
}

/** What a file's name says of its language. */
export function languageOf(path: string): string | undefined {
  const ending = /\.(\w+)$/.exec(path)?.[1];
  return ending?.toLowerCase();
}

function shown(node: RootContent | ElementContent, index: number): ReactNode {
  if (node.type === "text") return node.value;
  if (node.type !== "element") return null;
  const names = node.properties.className;
  return (
    <span key={index} className={Array.isArray(names) ? names.join(" ") : undefined}>
      {node.children.map(shown)}
    </span>
  );
}
