import type { Root, RootContent } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmFromMarkdown } from "mdast-util-gfm";
import { gfm } from "micromark-extension-gfm";

/** One top-level piece of a text: a paragraph, a list, a block of code. */
export interface Block {
  /** Where it begins in the whole text: what makes it the same block at the next look. */
  readonly start: number;
  readonly node: RootContent;
  /** The text that the positions of `node` are counted in. */
  readonly source: string;
}

/** A text as it has been parsed so far. */
export interface Parsed {
  readonly text: string;
  readonly blocks: readonly Block[];
}

export const nothing: Parsed = { text: "", blocks: [] };

/**
 * Blocks that may still change when more text comes: the last one, and the one before it, which the last may turn out
 * to belong to ("1. a", an empty line and "2" are a list and a paragraph, until the dot comes).
 */
const unsettledBlocks = 2;

/** Texts whose blocks are kept: those of rows that a reader scrolls back to. */
const keptTexts = 256;
const kept = new Map<string, Parsed>();

/** Parses a text that has all of its words; `before` may be the beginning of it, which was parsed as it came. */
export function parse(text: string, before = nothing): Parsed {
  const known = kept.get(text);
  if (known) return known;
  const parsed = parseMore(before, text);
  kept.set(text, parsed);
  if (kept.size > keptTexts) {
    for (const oldest of kept.keys()) {
      kept.delete(oldest);
      break;
    }
  }
  return parsed;
}

/**
 * Parses a text that has grown, from its first unsettled block on. Blocks that are settled are the same objects as
 * before, so that nothing of them is drawn again.
 */
export function parseMore(before: Parsed, text: string): Parsed {
  if (text === before.text) return before;
  const settled = before.blocks.slice(0, Math.max(0, before.blocks.length - unsettledBlocks));
  const from = before.blocks[settled.length]?.start ?? 0;
  if (!text.startsWith(before.text)) return { text, blocks: blocksOf(text, 0) };
  return { text, blocks: [...settled, ...blocksOf(text.slice(from), from)] };
}

function blocksOf(source: string, from: number): Block[] {
  const root: Root = fromMarkdown(source, { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] });
  return root.children.map((node) => ({ start: from + (node.position?.start.offset ?? 0), node, source }));
}
