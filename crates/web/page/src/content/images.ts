// Finds images in the content of messages and tool results. The agents write them differently.
import { fieldsOf } from "./given.ts";

export interface ImageData {
  readonly mimeType: string;
  /** Base64. */
  readonly data: string;
}

/** The image in a content block. */
export function imageIn(block: unknown): ImageData | undefined {
  const fields = fieldsOf(block);
  if (fields.type === "content") return imageIn(fields.content);
  if (fields.type !== "image") return undefined;
  const source = fieldsOf(fields.source);
  const data = source.data ?? fields.data;
  const mimeType = source.media_type ?? fields.mimeType ?? fields.media_type;
  return typeof data === "string" && typeof mimeType === "string" ? { mimeType, data } : undefined;
}

/** The images in a value, which may be a block or a list of blocks. */
export function imagesIn(value: unknown): ImageData[] {
  const blocks: unknown[] = Array.isArray(value) ? value : [value];
  return blocks.map(imageIn).filter((image) => image !== undefined);
}

/** A value without its images. */
export function withoutImages(value: unknown): unknown {
  if (Array.isArray(value)) return value.filter((block) => !imageIn(block));
  return imageIn(value) ? undefined : value;
}
