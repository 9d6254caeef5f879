import type { ElementContent, RootContent } from "hast";
import { memo, type ReactNode, useEffect, useSyncExternalStore } from "react";

import { Chunks } from "../ui/Chunks.tsx";
import { soon } from "../ui/soon.ts";

export type Lowlight = (typeof import("./languages.ts"))["lowlight"];

/** Longer code is not coloured, because colouring it would block the page for longer than one frame. */
const longestCode = 20_000;

/**
 * Some grammars backtrack over a stretch of code at each of its characters, so unusual code can block the page for
 * seconds. Most grammars do so over a long word, and that of C over anything that could be the head of a function. Such
 * code is not coloured.
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

/**
 * Colours code, if its language is known. Until the grammars are loaded, the code is shown without colours, at the same
 * size.
 */
export const Highlighted = memo(function Highlighted({ text, language }: Props): ReactNode {
  const coloured = isColoured(text, language);
  const lowlight = useGrammars(coloured);
  if (!coloured) return <Chunks text={text} />;
  if (!language || !lowlight?.registered(language)) return text;
  return lowlight.highlight(language, text).children.map(shown);
});

export function isColoured(text: string, language: string | undefined): boolean {
  return Boolean(language) && text.length <= longestCode && isTame(text, language);
}

/** The grammars, once they are loaded. They are loaded only if they are wanted. */
export function useGrammars(isWanted: boolean): Lowlight | undefined {
  const lowlight = useSyncExternalStore(subscribe, () => loaded);
  useEffect(() => (isWanted ? soon(load) : undefined), [isWanted]);
  return lowlight;
}

let loaded: Lowlight | undefined;
let loading: Promise<void> | undefined;
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** If the grammars cannot be loaded, code is shown without colours, and the next code block tries again. */
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

/** The language that a file's name suggests. */
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
