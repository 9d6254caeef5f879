import type { AlignType, Nodes, Parents, Table } from "mdast";
import { Fragment, memo, type ReactNode, useRef } from "react";

import { CodeBlock } from "./CodeBlock.tsx";
import { type Block, nothing, parse, parseStreaming } from "./parse.ts";

interface Props {
  readonly text: string;
  /** More of it is coming. */
  readonly streaming?: boolean | undefined;
}

/** Markdown as elements of the page. It never becomes HTML on the way, and HTML in it stays text. */
export const Markdown = memo(function Markdown({ text, streaming = false }: Props) {
  const { blocks } = useParsed(text, streaming);
  const last = blocks.length - 1;
  return (
    <div className="markdown">
      {blocks.map((block, index) => (
        <BlockView
          key={block.start}
          block={block}
          growing={streaming && index === last}
          piece={isPiece(block, blocks[index + 1]) || isPiece(blocks[index - 1], block)}
        />
      ))}
    </div>
  );
});

/** What was parsed at the last look is the beginning of what is parsed now. */
function useParsed(text: string, streaming: boolean) {
  const before = useRef(nothing);
  const parsed = streaming ? parseStreaming(before.current, text) : parse(text, before.current);
  before.current = parsed;
  return parsed;
}

/** Whether a paragraph that was cut goes on as the next block. */
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
      // The page has a heading of its own above the conversation, and each message is below that.
      const Heading = (["h3", "h3", "h4", "h5", "h6", "h6"] as const)[node.depth - 1] ?? "h6";
      return <Heading data-depth={node.depth}>{children(node, context)}</Heading>;
    }
    case "text":
      return node.value;
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
      return node.ordered ? (
        <ol start={node.start ?? 1}>{children(node, context)}</ol>
      ) : (
        <ul>{children(node, context)}</ul>
      );
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
    // An image would be asked for from elsewhere, which tells others who reads what. So it is a link.
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
    // HTML is what somebody wrote; so are references and definitions whose other half may be in another block.
    default:
      return sourceOf(node, context);
  }
}

function taskMark(checked: boolean | null | undefined): ReactNode {
  if (checked == null) return null;
  return (
    <span className="task-mark" role="img" aria-label={checked ? "done" : "to do"}>
      {checked ? "☑" : "☐"}
    </span>
  );
}

/** As it was written. */
function sourceOf(node: Nodes, { source }: Context): ReactNode {
  return source.slice(node.position?.start.offset, node.position?.end.offset);
}

/** A link to a place that a browser opens without running anything. */
function linked(url: string, text: ReactNode): ReactNode {
  if (!/^(https?:|mailto:)/i.test(url)) return undefined;
  return (
    <a href={url} title={url} target="_blank" rel="noopener noreferrer nofollow">
      {text}
    </a>
  );
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
                <td key={column} data-align={align(column)}>
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
