import { type ReactNode, useEffect, useEffectEvent, useId, useMemo, useRef, useState } from "react";
import { createPortal } from "react-dom";

import { count, fileSize } from "../ui/format.ts";
import { IconButton } from "../ui/IconButton.tsx";
import { SheetDialog } from "../ui/SheetDialog.tsx";
import { type Size, sizeOfImage } from "./image-size.ts";
import { type ImageData, imagesIn } from "./images.ts";

/** Larger images are not decoded. */
const longestData = 15_000_000;
const mostPixels = 40_000_000;

/** An image is drawn with at most this many pixels on its longer side. */
const longestSide = 2_000;

/** An image that is enlarged more than this is blurred. */
const mostEnlarged = 2;

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

/** An image from the agent, which opens large. */
export function Picture({ image }: { readonly image: ImageData }) {
  const [failed, setFailed] = useState(false);
  const [isOpen, setOpen] = useState(false);
  const file = useMemo(() => fileOf(image), [image.data, image.mimeType]);
  const drawn = useMemo(() => file && drawnSize(file.size), [file]);
  const format = formats[image.mimeType] ?? "unknown format";
  if (!file || !drawn || failed)
    return (
      <p className="hint" data-testid="no-picture">
        This image cannot be shown ({format}, {fileSize((image.data.length * 3) / 4)}).
      </p>
    );
  const facts = `${format}, ${count(file.size.width)} × ${count(file.size.height)}, ${fileSize(file.blob.size)}`;
  const canvas = <Canvas blob={file.blob} drawn={drawn} facts={facts} onFail={() => setFailed(true)} />;
  return (
    <figure className="picture">
      <button type="button" className="picture-button" aria-label={`Enlarge the image: ${facts}`} onClick={() => setOpen(true)}>
        {canvas}
      </button>
      <figcaption>{facts}</figcaption>
      {isOpen && (
        <Lightbox facts={facts} onClose={() => setOpen(false)}>
          <Canvas blob={file.blob} drawn={drawn} facts={facts} most={mostEnlarged} onFail={() => setFailed(true)} />
        </Lightbox>
      )}
    </figure>
  );
}

interface LightboxProps {
  readonly facts: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** An image as large as the window allows. It is outside of the list, which may be inside of a form. */
function Lightbox({ facts, onClose, children }: LightboxProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const title = useId();
  useEffect(() => dialog.current?.showModal(), []);
  return createPortal(
    <SheetDialog ref={dialog} className="lightbox" title={title} testId="lightbox" onClose={onClose}>
      <div className="lightbox-head">
        <h2 id={title}>{facts}</h2>
        <IconButton icon="close" name="Close" onClick={() => dialog.current?.close()} />
      </div>
      {children}
    </SheetDialog>,
    document.body,
  );
}

interface CanvasProps {
  readonly blob: Blob;
  readonly drawn: Size;
  readonly facts: string;
  /** How many times its own size it is shown at most. Without it, the page's style decides. */
  readonly most?: number;
  readonly onFail: () => void;
}

/**
 * An image is drawn on a canvas, because the page's policy allows only images that the server serves, and this one must
 * not become an address.
 */
function Canvas({ blob, drawn, facts, most, onFail }: CanvasProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const fail = useEffectEvent(onFail);
  useEffect(() => {
    let isGone = false;
    draw(blob, drawn, () => (isGone ? null : canvas.current)).catch(() => isGone || fail());
    return () => {
      isGone = true;
    };
  }, [blob, drawn]);
  const style = most === undefined ? undefined : { maxWidth: most * drawn.width, maxHeight: most * drawn.height };
  return <canvas ref={canvas} style={style} width={drawn.width} height={drawn.height} role="img" aria-label={`Image: ${facts}`} />;
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
