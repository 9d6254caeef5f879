// References whose definitions are in another block. Each block is parsed separately and does not know the others. So
// the parser gets a list of the words in brackets that are references, and a table for the whole text turns them into links.
import type { Nodes, RootContent } from "mdast";

/** Maps labels to the URLs of references. If a label is defined twice, the first definition counts. */
export type Definitions = ReadonlyMap<string, string>;

export const noDefinitions: Definitions = new Map();

const containers: ReadonlySet<string> = new Set(["blockquote", "list", "listItem", "footnoteDefinition"]);

/** The definitions of each block, which do not change. */
const definedIn = new WeakMap<RootContent, readonly (readonly [label: string, url: string])[]>();

export function definitionsOf(nodes: readonly RootContent[]): Definitions {
  const found = new Map<string, string>();
  for (const node of nodes) {
    let defined = definedIn.get(node);
    if (!defined) {
      defined = definitionsIn(node);
      definedIn.set(node, defined);
    }
    for (const [label, url] of defined) if (!found.has(label)) found.set(label, url);
  }
  return found;
}

function definitionsIn(node: Nodes): [string, string][] {
  if (node.type === "definition") return [[labelOf(node.identifier), node.url]];
  return containers.has(node.type) && "children" in node ? node.children.flatMap(definitionsIn) : [];
}

/** Normalizes a label as Markdown does. */
function labelOf(text: string): string {
  return text.replace(/\s+/g, " ").trim().toLowerCase().toUpperCase();
}

export function isSame(one: Definitions, other: Definitions): boolean {
  return one.size === other.size && [...one].every(([label, url]) => other.get(label) === url);
}

/** Words in brackets that may be references. */
const inBrackets = /\[((?:[^[\]\\]|\\.){1,999})\]/gs;

/** The definitions to which a piece of text may refer. */
export function usedIn(source: string, definitions: Definitions): Definitions {
  if (definitions.size === 0) return noDefinitions;
  const used = new Map<string, string>();
  for (const [, words = ""] of source.matchAll(inBrackets)) {
    const label = labelOf(words);
    const url = definitions.get(label);
    if (url !== undefined) used.set(label, url);
  }
  return used.size > 0 ? used : noDefinitions;
}

/** Definitions that are put before a piece of text that is parsed separately, so that its references are recognized. */
export function announced(definitions: Definitions): string {
  const lines = [...definitions.keys()].map((label) => `[${label}]: #\n`);
  return lines.length > 0 ? `${lines.join("")}\n` : "";
}

/** Replaces references by links, in place. A reference without a definition stays. */
export function asLinks<Node extends Nodes>(node: Node, definitions: Definitions): Nodes {
  if ("children" in node)
    for (const [index, child] of node.children.entries()) node.children[index] = asLinks(child, definitions) as never;
  if (node.type !== "linkReference" && node.type !== "imageReference") return node;
  const url = definitions.get(labelOf(node.identifier));
  if (url === undefined) return node;
  if (node.type === "imageReference") return { type: "image", url, alt: node.alt ?? null, position: node.position };
  return { type: "link", url, children: node.children, position: node.position };
}
