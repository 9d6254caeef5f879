import type { AlignType, List, Nodes, Parents, Table, TableCell } from "mdast";
import { Fragment, memo, type ReactNode, useEffect, useRef, useState } from "react";

import { soon } from "../ui/soon.ts";
import { CodeBlock } from "./CodeBlock.tsx";
import { withMath } from "./math.tsx";
import { type Block, longText, nothing, parse, parseLong, type Parsed, parseStreaming } from "./parse.ts";

interface Props {
  readonly text: string;
  /** Whether more text will arrive. */
  readonly streaming?: boolean | undefined;
}

/** How many blocks are compared together. A text may have thousands of blocks, of which only one grows. */
const groupSize = 32;

/** Renders Markdown as React elements. The text never becomes HTML, and HTML in it is shown as text. */
export const Markdown = memo(function Markdown({ text, streaming = false }: Props) {
  const { blocks } = useParsed(text, streaming);
  const groups = Array.from({ length: Math.ceil(blocks.length / groupSize) }, (_, group) => group * groupSize);
  return (
    <div className="markdown" data-long={text.length > longText || undefined}>
      {groups.map((first) => (
        <Group
          key={first}
          // The last block of a group and the first block of the next may be pieces of the same paragraph.
          before={blocks[first - 1]}
          blocks={blocks.slice(first, first + groupSize)}
          after={blocks[first + groupSize]}
          growing={streaming && first + groupSize >= blocks.length}
        />
      ))}
    </div>
  );
});

/** Parses the text, starting from the result of the previous render. A long text is parsed in pieces. */
function useParsed(text: string, streaming: boolean): Parsed {
  const before = useRef(nothing);
  const [, goOn] = useState(0);
  const parsed = nextOf(before.current, text, streaming);
  before.current = parsed;
  const known = parsed.text.length;
  useEffect(() => (known < text.length ? soon(() => goOn(known)) : undefined), [known, text.length]);
  return parsed;
}

function nextOf(before: Parsed, text: string, streaming: boolean): Parsed {
  if (text.length > longText) return parseLong(before, text);
  return streaming ? parseStreaming(before, text) : parse(text, before);
}

interface GroupProps {
  readonly before: Block | undefined;
  readonly blocks: readonly Block[];
  readonly after: Block | undefined;
  readonly growing: boolean;
}

const Group = memo(
  function Group({ before, blocks, after, growing }: GroupProps) {
    const last = blocks.length - 1;
    return blocks.map((block, index) => (
      <BlockView
        key={block.start}
        block={block}
        growing={growing && index === last}
        piece={isPiece(block, blocks[index + 1] ?? after) || isPiece(blocks[index - 1] ?? before, block)}
      />
    ));
  },
  (one, other) =>
    one.growing === other.growing &&
    one.before === other.before &&
    one.after === other.after &&
    one.blocks.length === other.blocks.length &&
    one.blocks.every((block, index) => block === other.blocks[index]),
);

/** Whether a paragraph that was cut continues in the next block. */
function isPiece(block: Block | undefined, next: Block | undefined): boolean {
  return block?.cutAt !== undefined && block.node.type === "paragraph" && next?.node.type === "paragraph";
}

const BlockView = memo(
  function BlockView({ block, growing, piece }: { block: Block; growing: boolean; piece: boolean }) {
    const { node, source } = block;
    if (!piece || node.type !== "paragraph") return shown(node, { source, growing });
    return (
      <p className="piece">
        {children(node, { source, growing })}
        {block.cutAt}
      </p>
    );
  },
  (before, after) =>
    before.block.node === after.block.node && before.growing === after.growing && before.piece === after.piece,
);

interface Context {
  readonly source: string;
  readonly growing: boolean;
}

function children(parent: Parents, context: Context): ReactNode[] {
  return parent.children.map((child, index) => <Fragment key={index}>{shown(child, context)}</Fragment>);
}

function shown(node: Nodes, context: Context): ReactNode {
  switch (node.type) {
    case "paragraph":
      return <p>{children(node, context)}</p>;
    case "heading": {
      // The headings of the page and of the conversation have the first two levels.
      const Heading = (["h3", "h3", "h4", "h5", "h6", "h6"] as const)[node.depth - 1] ?? "h6";
      return <Heading data-depth={node.depth}>{children(node, context)}</Heading>;
    }
    case "text":
      return withMath(node.value);
    case "emphasis":
      return <em>{children(node, context)}</em>;
    case "strong":
      return <strong>{children(node, context)}</strong>;
    case "delete":
      return <del>{children(node, context)}</del>;
    case "inlineCode":
      return <code>{node.value}</code>;
    case "code":
      return <CodeBlock text={node.value} language={node.lang ?? undefined} growing={context.growing} />;
    case "blockquote":
      return <blockquote>{children(node, context)}</blockquote>;
    case "list":
      return <ListView list={node} context={context} />;
    case "listItem":
      return (
        <li className={node.checked == null ? undefined : "task"}>
          {taskMark(node.checked)}
          {children(node, context)}
        </li>
      );
    case "table":
      return <TableView table={node} context={context} />;
    case "thematicBreak":
      return <hr />;
    case "break":
      return <br />;
    case "link":
      return linked(node.url, children(node, context)) ?? sourceOf(node, context);
    // Loading an image from another host would reveal to that host who reads the page. So it becomes a link.
    case "image":
      return linked(node.url, node.alt || node.url) ?? sourceOf(node, context);
    case "footnoteReference":
      return <sup>{node.label ?? node.identifier}</sup>;
    case "footnoteDefinition":
      return (
        <div className="footnote">
          <sup>{node.label ?? node.identifier}</sup>
          {children(node, context)}
        </div>
      );
    case "definition":
      return <p className="definition">{linkedIn(sourceOf(node, context), node.url)}</p>;
    // HTML and references without a definition are shown as they were written.
    default:
      return sourceOf(node, context);
  }
}

function ListView({ list, context }: { list: List; context: Context }) {
  return list.ordered ? <ol start={list.start ?? 1}>{children(list, context)}</ol> : <ul>{children(list, context)}</ul>;
}

function taskMark(checked: boolean | null | undefined): ReactNode {
  if (checked == null) return null;
  return (
    <span className="task-mark" role="img" aria-label={checked ? "done" : "to do"}>
      {checked ? "☑" : "☐"}
    </span>
  );
}

/** The source text of a node. */
function sourceOf(node: Nodes, { source }: Context): string {
  return source.slice(node.position?.start.offset, node.position?.end.offset);
}

/** A link, if the browser can open the URL without running a script. */
export function linked(url: string, text: ReactNode): ReactNode {
  if (!/^(https?|mailto):/i.test(url) || !URL.canParse(url)) return undefined;
  return (
    <a href={url} title={url} target="_blank" rel="noopener noreferrer nofollow">
      {text}
    </a>
  );
}

/** The source text, in which the URL is a link. */
function linkedIn(text: string, url: string): ReactNode {
  const at = text.lastIndexOf(url);
  const link = at < 0 ? undefined : linked(url, url);
  if (!link) return text;
  return [text.slice(0, at), <Fragment key="link">{link}</Fragment>, text.slice(at + url.length)];
}

/** A longer word may break. */
const longestWord = 40;

/** Whether a cell is one word or only numbers, such as `+12/−0`, in which a browser would see a place to break. */
function isWhole({ children: [only, ...more] }: TableCell): boolean {
  if (only?.type !== "text" || more.length > 0 || only.value.length > longestWord) return false;
  return !/\s/.test(only.value.trim()) || !/[^\d\s+\-−–±.,/%:]/.test(only.value);
}

function TableView({ table, context }: { table: Table; context: Context }) {
  const [head, ...rows] = table.children;
  const align = (column: number): AlignType | undefined => table.align?.[column];
  return (
    <div className="table" tabIndex={0} role="group" aria-label="Table">
      <table>
        <thead>
          <tr>
            {head?.children.map((cell, column) => (
              <th key={column} data-align={align(column)}>
                {children(cell, context)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {row.children.map((cell, column) => (
                <td key={column} data-align={align(column)} data-whole={isWhole(cell) || undefined}>
                  {children(cell, context)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
