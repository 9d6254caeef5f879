import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import markdown from "highlight.js/lib/languages/markdown";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import type { ElementContent, RootContent } from "hast";
import { createLowlight } from "lowlight";
import { memo, type ReactNode } from "react";

const languages = { bash, c, css, diff, go, ini, javascript, json, markdown, python, rust, sql, typescript, xml, yaml };
const lowlight = createLowlight(languages);

/** A longer text stays plain: to colour it would hold up the page for longer than one frame. */
const longestCode = 20_000;

interface Props {
  readonly text: string;
  readonly language?: string | undefined;
}

/** Code in colours, where the language is known. */
export const Highlighted = memo(function Highlighted({ text, language }: Props): ReactNode {
  if (!language || text.length > longestCode || !lowlight.registered(language)) return text;
  return lowlight.highlight(language, text).children.map(shown);
});

/** What a file's name says of its language. */
export function languageOf(path: string): string | undefined {
  const ending = path.slice(path.lastIndexOf(".") + 1).toLowerCase();
  return lowlight.registered(ending) ? ending : undefined;
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
