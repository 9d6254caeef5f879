import { asText } from "../content/text.ts";
import type { Row } from "./row.ts";

/** The text of a row, for the search and the clipboard. */
export function textOf(row: Row): string {
  switch (row.kind) {
    case "prompt":
    case "text":
    case "thinking":
    case "error":
      return row.text;
    case "tool":
      return [row.name, asText(row.input), asText(row.output), ...row.inner.map(textOf)].filter(Boolean).join("\n");
    case "group":
      return row.calls.map(textOf).join("\n");
    case "result":
      return row.outcome;
    case "question":
      return `${row.question.toolName} ${asText(row.question.input)}`;
    case "notice":
      return `${row.name} ${asText(row.data)}`;
  }
}
