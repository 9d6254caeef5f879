// A permission request and the call that it is about are one row.
import { isAllowed } from "./answers.ts";
import { openQuestionOf, type QuestionRow, type Row, type ToolRow, type ToolState } from "./row.ts";

/** Moves each permission request into the row of its call, if that row is in the list before it. */
export function withQuestions(rows: Row[]): Row[] {
  if (!rows.some(({ kind }) => kind === "question")) return rows;
  const result: Row[] = [];
  const places = new Map<string, number>();
  const asked = new Map<number, QuestionRow[]>();
  for (const row of rows) {
    const place = row.kind === "question" ? places.get(row.question.toolCallId ?? "") : undefined;
    if (row.kind === "question" && place !== undefined) {
      asked.set(place, [...(asked.get(place) ?? []), row]);
      continue;
    }
    // An agent may use the id of a call again. The newest call counts.
    if (row.kind === "tool") places.set(row.callId, result.length);
    result.push(row);
  }
  for (const [place, questions] of asked) {
    const call = result[place];
    if (call?.kind === "tool") result[place] = joined(call, questions);
  }
  return result;
}

/** The last joined row of each call. An unchanged row remains the same object. */
const known = new WeakMap<ToolRow, ToolRow>();

function joined(call: ToolRow, asked: readonly QuestionRow[]): ToolRow {
  const before = known.get(call);
  if (before && before.asked.length === asked.length && before.asked.every((row, at) => row === asked[at])) return before;
  const row: ToolRow = { ...call, asked, took: call.took && Math.max(0, call.took - waitedMs(asked)) };
  const result = { ...row, state: stateOf(row) };
  known.set(call, result);
  return result;
}

/** How long the call waited for the user, which is no time of the tool. */
function waitedMs(asked: readonly QuestionRow[]): number {
  const waits = asked.map(({ question: { createdAt, settledAt } }) => (settledAt ? Date.parse(settledAt) - Date.parse(createdAt) : 0));
  return waits.reduce((sum, wait) => sum + wait, 0);
}

function stateOf(row: ToolRow): ToolState {
  const { state } = row;
  if (state === "running" || state === "writing") return openQuestionOf(row) ? "waiting" : state;
  const last = row.asked.at(-1)?.question;
  if (state !== "failed" || last?.state !== "resolved" || isAllowed(last)) return state;
  // Another reason, such as the end of the turn, is no answer.
  if (last.by === "timeout") return "expired";
  return last.by === "user" || last.by === undefined ? "rejected" : state;
}
