import type { Code, Root, RootContent } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmFromMarkdown } from "mdast-util-gfm";
import { gfm } from "micromark-extension-gfm";

import { announced, asLinks, type Definitions, definitionsOf, isSame, noDefinitions, usedIn } from "./references.ts";

/** A top-level block of a text: a paragraph, a list, a code block. */
export interface Block {
  /** The position of the block in the whole text. It identifies the block when the text is parsed again. */
  readonly start: number;
  readonly node: RootContent;
  /** The text to which the positions of `node` refer. */
  readonly source: string;
  /** The white space at which the block was cut. The block continues in the next one. */
  readonly cutAt?: string;
  /** The definitions that turned its references into links. */
  readonly used?: Definitions;
}

/** A text, as far as it has been parsed. */
export interface Parsed {
  readonly text: string;
  readonly blocks: readonly Block[];
  /** How many blocks, counted from the beginning, stay unchanged while the text grows: the blocks before a cut. */
  readonly fixed?: number;
  /** The first block that a cut created. When the text is complete, it is parsed again. */
  readonly firstCut?: number;
  /** The targets of references, wherever in the text they are defined. */
  readonly definitions?: Definitions;
}

export const nothing: Parsed = { text: "", blocks: [] };

/**
 * Blocks that may still change when more text arrives: the last one, and the one before it, to which the last one may
 * turn out to belong. For example, "1. a", an empty line and "2" are a list and a paragraph, until the dot arrives.
 */
const unsettledBlocks = 2;

/** How many parsed texts are kept, for rows to which the user scrolls back. */
const keptTexts = 256;
const kept = new Map<string, Parsed>();

/** Parses a complete text. `before` may be the result for its beginning, which was parsed while it arrived. */
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
 * Parses a text that has grown, from its first unsettled block on. Settled blocks remain the same objects, so React
 * does not render them again.
 */
export function parseMore(before: Parsed, text: string): Parsed {
  if (text === before.text) return before;
  if (!text.startsWith(before.text)) return resolved({ text, blocks: blocksOf(text, 0) });
  const code = moreCode(before, text);
  if (code) return code;
  const kept = Math.max(0, before.fixed ?? 0, before.blocks.length - unsettledBlocks);
  return resolved({ ...before, text, blocks: from(before, kept, text) });
}

/** Parses a text that still arrives. The time for it does not grow with a block that does not end. */
export function parseStreaming(before: Parsed, text: string): Parsed {
  let parsed = parseMore(before, text);
  while (isTooLong(parsed)) parsed = cut(parsed);
  return parsed;
}

/** Parsing a longer text at once would block the page. */
export const longText = 100_000;

/** How many more characters of a long text are parsed at a time. */
const longestPiece = 20_000;

/**
 * Parses the next piece of a long text, after what was parsed before. Cut blocks stay cut: as a whole, they would be
 * too long to be parsed or rendered at once.
 */
export function parseLong(before: Parsed, text: string): Parsed {
  const known = text.startsWith(before.text) ? before.text.length : 0;
  return parseStreaming(before, text.slice(0, known + longestPiece));
}

/** Parses the blocks from the first cut on again, because their ends are now known. */
function parseWhole({ firstCut, text, blocks }: Parsed, whole: string): Parsed {
  const exact = text.slice(0, firstCut === undefined ? text.length : blocks[firstCut]?.start);
  return parseMore({ text: exact, blocks: blocks.slice(0, firstCut) }, whole);
}

/** The blocks that are kept, followed by the blocks that are parsed again. */
function from(before: Parsed, kept: number, text: string): Block[] {
  const start = kept > 0 ? (before.blocks[kept]?.start ?? before.text.length) : 0;
  return [...before.blocks.slice(0, kept), ...blocksOf(text.slice(start), start, before.definitions)];
}

/** Parses the blocks again whose references have become known. All other blocks remain the same objects. */
function resolved(parsed: Parsed): Parsed {
  const { text, blocks, definitions = noDefinitions } = parsed;
  if (definitions.size === 0 && !text.includes("]:")) return parsed;
  const found = definitionsOf(blocks.map(({ node }) => node));
  if (isSame(found, definitions)) return parsed;
  const known = blocks.map((block, index) => {
    const source = text.slice(block.start, blocks[index + 1]?.start ?? text.length);
    const used = usedIn(source, found);
    if (isSame(used, block.used ?? noDefinitions)) return block;
    // The targets of its references do not change where a block ends.
    const [again = block] = blocksOf(source, block.start, used);
    return { ...block, ...again, used };
  });
  return { ...parsed, blocks: known, definitions: found };
}

/** A block that has not ended is parsed again with each new piece of text, so its length must be limited. */
const longestUnsettled = 6_000;

function isTooLong({ text, blocks, fixed = 0 }: Parsed): boolean {
  const first = blocks[Math.max(fixed, blocks.length - unsettledBlocks)];
  const last = blocks.at(-1);
  return first !== undefined && !isFence(last, text) && text.length - first.start > longestUnsettled;
}

/**
 * Cuts a block that is too long at the end of a line or word, until the text is complete. A list continues as another
 * list, and a paragraph as another paragraph.
 */
function cut(parsed: Parsed): Parsed {
  const { text, blocks, fixed = 0 } = parsed;
  const last = blocks.length - 1;
  const block = blocks[last];
  const firstCut = parsed.firstCut ?? Math.max(fixed, blocks.length - unsettledBlocks);
  // The previous block is the long one.
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

/** Whether the block is fenced code without indentation, so that nothing precedes its lines. */
function isFence(block: Block | undefined, text: string): block is Block & { readonly node: Code } {
  if (block?.node.type !== "code" || !/[`~]/.test(text[block.start] ?? "")) return false;
  return block.start === 0 || text[block.start - 1] === "\n";
}

/** The opening line of a fence, and its marks. */
const opening = /^(`{3,}|~{3,})[^\n]*\n/;

/** Growing code is the same block with more lines, so it does not need to be parsed again. */
function moreCode(before: Parsed, text: string): Parsed | undefined {
  const block = before.blocks.at(-1);
  if (!isFence(block, text)) return undefined;
  const source = text.slice(block.start);
  const [line, fence] = opening.exec(source) ?? [];
  // The last line was incomplete in the previous text, so it is checked again.
  const newLines = source.slice(source.lastIndexOf("\n", before.text.length - block.start - 1) + 1);
  if (!line || !fence || before.text.length - block.start < line.length || /[\r\0]/.test(newLines)) return undefined;
  const marks = new RegExp(`^ {0,3}${fence[0]}{${fence.length},}[ \\t]*$`, "m");
  // A block that was already closed can only be followed by empty lines.
  if (marks.test(source.slice(line.length))) return undefined;
  const node = { ...block.node, value: source.slice(line.length, source.endsWith("\n") ? -1 : undefined) };
  return { ...before, text, blocks: [...before.blocks.slice(0, -1), { ...block, node, source }] };
}

/** Created once, because they keep no state of a text. */
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
