import type { Code, Root, RootContent } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmFromMarkdown } from "mdast-util-gfm";
import { gfm } from "micromark-extension-gfm";

import { announced, asLinks, type Definitions, definitionsOf, isSame, noDefinitions, usedIn } from "./references.ts";

/** One top-level piece of a text: a paragraph, a list, a block of code. */
export interface Block {
  /** Where it begins in the whole text: what makes it the same block at the next look. */
  readonly start: number;
  readonly node: RootContent;
  /** The text that the positions of `node` are counted in. */
  readonly source: string;
  /** It was cut here, in this white space, and goes on as the next block. */
  readonly cutAt?: string;
  /** The definitions by which its references became links. */
  readonly used?: Definitions;
}

/** A text as it has been parsed so far. */
export interface Parsed {
  readonly text: string;
  readonly blocks: readonly Block[];
  /** So many blocks stay as they are while the text grows: those before a cut. */
  readonly fixed?: number;
  /** The first block that a cut has made, which it will not be when all of the text is here. */
  readonly firstCut?: number;
  /** Where references lead that are anywhere in the text. */
  readonly definitions?: Definitions;
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
  const parsed = parseWhole(before, text);
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
  if (!text.startsWith(before.text)) return resolved({ text, blocks: blocksOf(text, 0) });
  const code = moreCode(before, text);
  if (code) return code;
  const kept = Math.max(0, before.fixed ?? 0, before.blocks.length - unsettledBlocks);
  return resolved({ ...before, text, blocks: from(before, kept, text) });
}

/** The same for a text that is on its way: what it takes does not grow with a block that does not end. */
export function parseStreaming(before: Parsed, text: string): Parsed {
  let parsed = parseMore(before, text);
  while (isTooLong(parsed)) parsed = cut(parsed);
  return parsed;
}

/** To parse a longer text at once would hold up the page. */
export const longText = 100_000;

/** So much more of a long text is parsed at a time. */
const longestPiece = 20_000;

/**
 * The next piece of a long text, after what has been parsed of it before. What was cut stays cut: its blocks would be too
 * long to be parsed, or drawn, at once.
 */
export function parseLong(before: Parsed, text: string): Parsed {
  const known = text.startsWith(before.text) ? before.text.length : 0;
  return parseStreaming(before, text.slice(0, known + longestPiece));
}

/** What a cut has made is parsed anew: now it is known where it ends. */
function parseWhole({ firstCut, text, blocks }: Parsed, whole: string): Parsed {
  const exact = text.slice(0, firstCut === undefined ? text.length : blocks[firstCut]?.start);
  return parseMore({ text: exact, blocks: blocks.slice(0, firstCut) }, whole);
}

/** The blocks that are kept, and what is parsed anew after them. */
function from(before: Parsed, kept: number, text: string): Block[] {
  const start = kept > 0 ? (before.blocks[kept]?.start ?? before.text.length) : 0;
  return [...before.blocks.slice(0, kept), ...blocksOf(text.slice(start), start, before.definitions)];
}

/** Blocks whose references have become known are parsed again; all others stay the same objects. */
function resolved(parsed: Parsed): Parsed {
  const { text, blocks, definitions = noDefinitions } = parsed;
  if (definitions.size === 0 && !text.includes("]:")) return parsed;
  const found = definitionsOf(blocks.map(({ node }) => node));
  if (isSame(found, definitions)) return parsed;
  const known = blocks.map((block, index) => {
    const source = text.slice(block.start, blocks[index + 1]?.start ?? text.length);
    const used = usedIn(source, found);
    if (isSame(used, block.used ?? noDefinitions)) return block;
    // What it is does not depend on where its references lead.
    const [again = block] = blocksOf(source, block.start, used);
    return { ...block, ...again, used };
  });
  return { ...parsed, blocks: known, definitions: found };
}

/** A block that has not ended is parsed with each piece that comes, so it must not be long. */
const longestUnsettled = 6_000;

function isTooLong({ text, blocks, fixed = 0 }: Parsed): boolean {
  const first = blocks[Math.max(fixed, blocks.length - unsettledBlocks)];
  const last = blocks.at(-1);
  return first !== undefined && !isFence(last, text) && text.length - first.start > longestUnsettled;
}

/**
 * Ends a block that is too long at the end of a line or word, until all of the text is here: a list goes on as another
 * list, and a paragraph as another paragraph.
 */
function cut(parsed: Parsed): Parsed {
  const { text, blocks, fixed = 0 } = parsed;
  const last = blocks.length - 1;
  const block = blocks[last];
  const firstCut = parsed.firstCut ?? Math.max(fixed, blocks.length - unsettledBlocks);
  // The block before it is the one that is long.
  if (!block || text.length - block.start <= longestUnsettled) return { ...parsed, fixed: last, firstCut };
  const end = lastBreak(text, block.start + longestUnsettled / 2, block.start + longestUnsettled);
  const head = blocksOf(text.slice(block.start, end), block.start, parsed.definitions);
  const cutAt = /\s?$/.exec(text.slice(block.start, end))?.[0] ?? "";
  const [piece] = head.slice(-1);
  const cutBlocks = [...blocks.slice(0, last), ...head.slice(0, -1), ...(piece ? [{ ...piece, cutAt }] : [])];
  const rest = blocksOf(text.slice(end), end, parsed.definitions);
  return { ...parsed, blocks: [...cutBlocks, ...rest], fixed: cutBlocks.length, firstCut };
}

function lastBreak(text: string, least: number, most: number): number {
  for (const mark of ["\n", " "]) {
    const at = text.lastIndexOf(mark, most - 1);
    if (at >= least) return at + 1;
  }
  return most;
}

/** Code between fences, whose lines are its own: nothing stands before them. */
function isFence(block: Block | undefined, text: string): block is Block & { readonly node: Code } {
  if (block?.node.type !== "code" || !/[`~]/.test(text[block.start] ?? "")) return false;
  return block.start === 0 || text[block.start - 1] === "\n";
}

/** A fence: its marks, and the line that it opens with, and the line that it opens with. */
const opening = /^(`{3,}|~{3,})[^\n]*\n/;

/** Code that goes on is the same block with more lines: it need not be parsed to know that. */
function moreCode(before: Parsed, text: string): Parsed | undefined {
  const block = before.blocks.at(-1);
  if (!isFence(block, text)) return undefined;
  const source = text.slice(block.start);
  const [line, fence] = opening.exec(source) ?? [];
  // The line that was not whole at the last look is looked at again.
  const newLines = source.slice(source.lastIndexOf("\n", before.text.length - block.start - 1) + 1);
  if (!line || !fence || before.text.length - block.start < line.length || /[\r\0]/.test(newLines)) return undefined;
  const marks = new RegExp(`^ {0,3}${fence[0]}{${fence.length},}[ \\t]*$`, "m");
  // One that was closed before is not the last block of a text that goes on, but for empty lines.
  if (marks.test(source.slice(line.length))) return undefined;
  const node = { ...block.node, value: source.slice(line.length, source.endsWith("\n") ? -1 : undefined) };
  return { ...before, text, blocks: [...before.blocks.slice(0, -1), { ...block, node, source }] };
}

/** Made once: they keep nothing of a text. */
const dialect = { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] };

function blocksOf(text: string, from: number, definitions = noDefinitions): Block[] {
  const used = usedIn(text, definitions);
  const before = announced(used);
  const source = before + text;
  const root: Root = fromMarkdown(source, dialect);
  return root.children.flatMap((node) => {
    const offset = (node.position?.start.offset ?? 0) - before.length;
    if (offset < 0) return [];
    if (used.size === 0) return [{ start: from + offset, node, source }];
    return [{ start: from + offset, node: asLinks(node, used) as RootContent, source, used }];
  });
}
