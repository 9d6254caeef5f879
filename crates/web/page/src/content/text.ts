import { imageIn } from "./images.ts";

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
