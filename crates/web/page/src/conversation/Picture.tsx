import { useEffect, useMemo, useRef, useState } from "react";

import { count, fileSize } from "../ui/format.ts";
import { type ImageData, imagesIn } from "./images.ts";
import { type Size, sizeOfImage } from "./image-size.ts";

/** Larger images are not decoded. */
const longestData = 15_000_000;
const mostPixels = 40_000_000;

/** An image is drawn with at most this many pixels on its longer side. */
const longestSide = 2_000;

/** The types of images that are shown, which are also those of messages. */
export const formats: Readonly<Record<string, string>> = {
  "image/png": "PNG",
  "image/jpeg": "JPEG",
  "image/gif": "GIF",
  "image/webp": "WebP",
};

/** The images in a value, one below the other. */
export function Pictures({ value }: { readonly value: unknown }) {
  return imagesIn(value).map((image, at) => <Picture key={at} image={image} />);
}

/**
 * An image from the agent. It is drawn on a canvas, because the page's policy allows only images that the server
 * serves, and this one must not become an address.
 */
export function Picture({ image }: { readonly image: ImageData }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [failed, setFailed] = useState(false);
  const file = useMemo(() => fileOf(image), [image.data, image.mimeType]);
  const drawn = useMemo(() => file && drawnSize(file.size), [file]);
  useEffect(() => {
    if (!file || !drawn) return;
    let isGone = false;
    draw(file.blob, drawn, () => (isGone ? null : canvas.current)).catch(() => isGone || setFailed(true));
    return () => {
      isGone = true;
    };
  }, [file, drawn]);
  const format = formats[image.mimeType] ?? "unknown format";
  if (!file || !drawn || failed)
    return (
      <p className="hint" data-testid="no-picture">
        This image cannot be shown ({format}, {fileSize((image.data.length * 3) / 4)}).
      </p>
    );
  const facts = `${format}, ${count(file.size.width)} × ${count(file.size.height)}, ${fileSize(file.blob.size)}`;
  return (
    <figure className="picture">
      <canvas ref={canvas} width={drawn.width} height={drawn.height} role="img" aria-label={`Image: ${facts}`} />
      <figcaption>{facts}</figcaption>
    </figure>
  );
}

interface File {
  readonly blob: Blob;
  readonly size: Size;
}

function fileOf({ mimeType, data }: ImageData): File | undefined {
  if (!Object.hasOwn(formats, mimeType) || data.length > longestData) return undefined;
  try {
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    const size = sizeOfImage(bytes);
    return size && { blob: new Blob([bytes], { type: mimeType }), size };
  } catch {
    // The text is not base64.
    return undefined;
  }
}

function drawnSize({ width, height }: Size): Size | undefined {
  if (width === 0 || height === 0 || width * height > mostPixels) return undefined;
  const scale = Math.min(1, longestSide / Math.max(width, height));
  return { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) };
}

async function draw(blob: Blob, { width, height }: Size, canvas: () => HTMLCanvasElement | null): Promise<void> {
  // A rotated photo would have another size than its first bytes say.
  const imageOrientation = "none";
  const size = { resizeWidth: width, resizeHeight: height };
  const bitmap = await createImageBitmap(blob, { imageOrientation, resizeQuality: "high", ...size });
  canvas()?.getContext("2d")?.drawImage(bitmap, 0, 0);
  bitmap.close();
}
