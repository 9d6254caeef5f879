import { memo, type ReactNode } from "react";

import { imageIn } from "../content/images.ts";
import { Pictures } from "../content/Picture.tsx";
import { Markdown } from "../markdown/Markdown.tsx";
import { CopyButton } from "../ui/CopyButton.tsx";
import { timeOf } from "../ui/format.ts";
import { Icon } from "../ui/Icon.tsx";
import { IconButton } from "../ui/IconButton.tsx";
import { surveyOf } from "./answers.ts";
import { isLong, useBegan } from "./began.ts";
import { ErrorCard } from "./ErrorCard.tsx";
import { GroupCard } from "./GroupCard.tsx";
import { useKept } from "./kept.tsx";
import { LongText } from "./LongText.tsx";
import { NoticeLine } from "./NoticeLine.tsx";
import { usePainted } from "./painted.ts";
import { PromptPictures } from "./PromptPictures.tsx";
import { QuestionCard } from "./QuestionCard.tsx";
import { RawJson } from "./RawJson.tsx";
import { ResultLine } from "./ResultLine.tsx";
import { textOf } from "./row-text.ts";
import { openQuestionOf, type QuestionRow, type Row, type TextRow } from "./row.ts";
import { ToolCard } from "./ToolCard.tsx";
import { todosOf } from "./tools/newest-todos.ts";
import { TodoNotice } from "./tools/TodoNotice.tsx";

export interface RowProps {
  readonly row: Row;
  /** Whether the text is shown as it was written, instead of as Markdown. */
  readonly plain: boolean;
  /** Sends the prompt of the failed turn again. Absent if that is not possible. */
  readonly onRetry?: ((row: Row) => void) | undefined;
}

export const RowView = memo(function RowView({ row, plain, onRetry }: RowProps) {
  const [raw, setRaw] = useKept(`${row.key} raw`, false);
  return (
    <article
      className="row"
      data-kind={row.kind}
      data-testid={`row-${row.kind}`}
      data-sequence={row.sequence}
      data-type={row.type}
      aria-label={labelOf(row)}
    >
      <div className="row-meta">
        <span className="row-kind">{labelOf(row)}</span>
        <Time row={row} />
        <span className="row-type">{row.type}</span>
        <span className="row-number">#{row.sequence}</span>
        <Actions row={row} raw={raw} onRaw={setRaw} />
      </div>
      {raw && <RawJson sequence={row.sequence} />}
      <RowBody row={row} plain={plain} onRetry={onRetry} />
    </article>
  );
});

/** When it began. */
function Time({ row }: { readonly row: Row }) {
  const isPainted = usePainted();
  if (isPainted && (row.kind === "text" || row.kind === "thinking") && isLong(row)) return <LongTime row={row} />;
  return <TimeAt row={row} time={row.time} />;
}

function LongTime({ row }: { readonly row: TextRow }) {
  return <TimeAt row={row} time={useBegan(row)} />;
}

function TimeAt({ row, time }: { readonly row: Row; readonly time: string }) {
  return (
    <time className="row-time" dateTime={time} title={`${time}, event ${row.sequence}`}>
      {timeOf(time)}
    </time>
  );
}

function Actions({ row, raw, onRaw }: { row: Row; raw: boolean; onRaw: (raw: boolean) => void }) {
  if (!usePainted()) return null;
  return (
    <span className="row-actions">
      <CopyButton text={() => textOf(row)} what="text" />
      <IconButton
        icon="braces"
        className="small"
        data-testid="raw-toggle"
        aria-pressed={raw}
        name="Raw JSON"
        title="Raw JSON (R)"
        onClick={() => onRaw(!raw)}
      />
    </span>
  );
}

function RowBody({ row, plain, onRetry }: RowProps): ReactNode {
  switch (row.kind) {
    case "prompt":
      return (
        <div className="prompt" dir="auto">
          <LongText id={row.key} text={row.text} />
          {row.images && <PromptPictures row={row} />}
        </div>
      );
    case "text":
      return <Words row={row} plain={plain} />;
    case "thinking":
      return <Thinking row={row} plain={plain} />;
    case "tool": {
      const question = openQuestionOf(row);
      if (question) return <QuestionCard key={question.key} row={question} call={row} />;
      return <ToolCard row={row} renderInner={(inner) => <RowView key={inner.key} row={inner} plain={plain} />} />;
    }
    case "group":
      return <GroupCard row={row} renderCall={(call) => <RowView key={call.key} row={call} plain={plain} />} />;
    case "error":
      return <ErrorCard row={row} onRetry={onRetry && (() => onRetry(row))} />;
    case "result":
      return <ResultLine row={row} />;
    case "question":
      return <QuestionCard row={row} />;
    case "notice":
      if (row.name === "todo_list" && todosOf(row)) return <TodoNotice row={row} />;
      return imageIn(row.data) ? <Pictures value={row.data} /> : <NoticeLine row={row} />;
  }
}

/** Why a message is incomplete, by its outcome. */
const cutShort: Readonly<Record<string, string>> = {
  cancelled: "Cancelled before it was complete.",
  failed: "Cut off by an error.",
  interrupted: "Cut off because the turn was interrupted.",
};

function Words({ row, plain }: { row: TextRow; plain: boolean }) {
  return (
    <div className="words" dir="auto" data-streaming={row.streaming || undefined}>
      {plain ? (
        <div className="plain">
          <LongText id={row.key} text={row.text} growing={row.streaming} />
        </div>
      ) : (
        <Markdown text={row.text} streaming={row.streaming} />
      )}
      {row.outcome && <p className="cut-short">{cutShort[row.outcome] ?? "This message is incomplete."}</p>}
    </div>
  );
}

function Thinking({ row, plain }: { row: TextRow; plain: boolean }) {
  const [open, setOpen] = useKept(`${row.key} open`, false);
  return (
    <div className="thinking">
      <button type="button" className="disclosure" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="chevron" />
        <span className="thinking-title">{row.streaming ? "Reasoning…" : "Reasoning"}</span>
        {!open && (
          <span className="thinking-preview">{row.streaming ? row.text.slice(-120) : row.text.slice(0, 120)}</span>
        )}
      </button>
      {open && <Words row={row} plain={plain} />}
    </div>
  );
}

/** An agent that lets the user choose needs no permission. */
function requestOf({ question }: QuestionRow): string {
  return surveyOf(question) ? "Question" : "Permission request";
}

function labelOf(row: Row): string {
  const asked = openQuestionOf(row);
  switch (row.kind) {
    case "prompt":
      return "You";
    case "text":
      return "Agent";
    case "thinking":
      return "Reasoning";
    case "tool":
      return asked ? requestOf(asked) : "Tool";
    case "group":
      return "Tools";
    case "error":
      return "Error";
    case "result":
      return "End of turn";
    case "question":
      return requestOf(row);
    case "notice":
      return todosOf(row) ? "To-do list" : imageIn(row.data) ? "Image" : "Notice";
  }
}
