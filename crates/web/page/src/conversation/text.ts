import { imageIn } from "./images.ts";
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

/** The input or result of a tool as text. It is JSON if there is no simpler form. */
export function asText(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return value;
  if (Array.isArray(value)) {
    const texts = value.map(textBlock);
    if (texts.every((text) => text !== undefined)) return texts.join("\n");
  }
  return imageIn(value) ? textBlock(value) ?? "" : JSON.stringify(value, null, 2);
}

/** The text of a content block that contains only text. */
function textBlock(block: unknown): string | undefined {
  if (typeof block === "string") return block;
  const image = imageIn(block);
  if (image) return `[${image.mimeType}]`;
  if (typeof block !== "object" || block === null || !("text" in block)) return undefined;
  return typeof block.text === "string" ? block.text : undefined;
}
