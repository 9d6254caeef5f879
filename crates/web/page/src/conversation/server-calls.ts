// The tools that a model API runs itself, such as its web search. Their calls and results are blocks of the message.
import { fieldsOf } from "../content/given.ts";
import type { NoticeRow, Row, ToolRow } from "./row.ts";

/** Makes one row of each call that the API ran. An unchanged list has the same rows. */
export function withServerCalls(rows: Row[]): Row[] {
  if (!rows.some((row) => isBlock(row) && (resultIn(row) || isSearch(row)))) return rows;
  const results = new Map<string, Result>();
  const calls = new Set(rows.flatMap((row) => (row.kind === "tool" ? [row.callId] : [])));
  for (const row of rows) {
    const result = isBlock(row) ? resultIn(row) : undefined;
    if (result && calls.has(result.callId)) results.set(result.callId, result);
  }
  return rows.flatMap((row): Row[] => {
    if (row.kind === "tool") {
      const result = results.get(row.callId);
      return [result ? { ...row, state: result.state, output: result.output } : row];
    }
    if (!isBlock(row)) return [row];
    // The result is shown with its call.
    if (results.has(resultIn(row)?.callId ?? "")) return [];
    return [isSearch(row) ? searchRow(row) : row];
  });
}

/** Whether it is a block of a message that has no form of its own. */
function isBlock(row: Row): row is NoticeRow {
  return row.kind === "notice" && row.name === "content";
}

interface Result {
  readonly callId: string;
  readonly state: "done" | "failed";
  readonly output: string;
}

/** The result of a tool that the API of Anthropic ran. */
function resultIn({ data }: NoticeRow): Result | undefined {
  const { type, tool_use_id: callId, content } = fieldsOf(data);
  if (typeof type !== "string" || !/^web_(search|fetch)_tool_result$/.test(type) || typeof callId !== "string") return undefined;
  const { error_code: code } = fieldsOf(content);
  if (typeof code === "string") return { callId, state: "failed", output: code };
  const found: unknown[] = Array.isArray(content) ? content : [content];
  return { callId, state: "done", output: found.map(foundText).join("\n\n") };
}

/** The title and the URL of a page. */
function foundText(page: unknown): string {
  const { title, url } = fieldsOf(page);
  return [title, url].filter((text) => typeof text === "string" && text).join("\n") || JSON.stringify(page);
}

/** Whether it is a search that the API of OpenAI ran. Its result is only in the text of the model. */
function isSearch({ data }: NoticeRow): boolean {
  return fieldsOf(data).type === "web_search_call";
}

function searchRow(row: NoticeRow): ToolRow {
  const { id, action, status } = fieldsOf(row.data);
  const { type: _, ...input } = fieldsOf(action);
  return {
    ...{ key: row.key, sequence: row.sequence, time: row.time, type: row.type, kind: "tool", name: "web_search" },
    ...{ callId: String(id ?? ""), input, inner: [], asked: [] },
    state: status === "failed" ? "failed" : status === "completed" ? "done" : "running",
  };
}
