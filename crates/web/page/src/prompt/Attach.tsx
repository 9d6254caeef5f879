import type { AgentType, ImageLimits } from "@tokenrail/client";
import { type ChangeEvent, type ClipboardEvent, type DragEvent, useRef } from "react";

import { formats, Picture } from "../content/Picture.tsx";
import { counted, fileSize } from "../ui/format.ts";
import { Icon } from "../ui/Icon.tsx";
import { IconButton } from "../ui/IconButton.tsx";
import { type Attached, attached, readImage } from "./attached.ts";

const accepted = Object.keys(formats).join(",");

interface Adding {
  /** The type of the agent. `undefined`: not known yet, so the server decides what it accepts. */
  readonly type: AgentType | undefined;
  /** The images that the message has already. */
  readonly images: readonly Attached[];
  readonly add: (images: readonly Attached[]) => void;
  readonly onFailure: (failure: Error | undefined) => void;
}

/** The ways in which a form takes images: the properties of its element, and a function for chosen files. */
export function useAdding({ type, images: present, add, onFailure }: Adding) {
  const take = async (files: readonly File[]) => {
    onFailure(undefined);
    if (type?.can.images === false) return onFailure(new Error("agents of this type accept no images"));
    const images = files.filter((file) => Object.hasOwn(formats, file.type));
    const excess = excessOf(images, present, type?.imageLimits);
    // They are not even read: a large upload would only be refused at its end.
    if (excess) return onFailure(new Error(excess));
    try {
      const read = await Promise.all(images.map(async (file) => attached(await readImage(file), file.name)));
      if (read.length > 0) add(read);
      if (images.length < files.length) onFailure(new Error("only PNG, JPEG, GIF and WebP images can be added"));
    } catch (error) {
      onFailure(error as Error);
    }
  };
  const onPaste = (event: ClipboardEvent) => {
    const files = [...event.clipboardData.files];
    // Text that comes with its picture, as from a table, is wanted as text.
    if (files.length === 0 || event.clipboardData.types.includes("text/plain")) return;
    event.preventDefault();
    void take(files);
  };
  const onDragOver = (event: DragEvent) => {
    if (event.dataTransfer.types.includes("Files")) event.preventDefault();
  };
  const onDrop = (event: DragEvent) => {
    const files = [...event.dataTransfer.files];
    if (files.length === 0) return;
    event.preventDefault();
    void take(files);
  };
  return { take, box: { onPaste, onDragOver, onDrop } };
}

/** Why the server would refuse a message with these images too. */
function excessOf(
  images: readonly File[],
  present: readonly Attached[],
  limits: ImageLimits | undefined,
): string | undefined {
  if (!limits) return undefined;
  const most = limits.images;
  if (most < present.length + images.length) return `a message can have at most ${counted(most, "image")}`;
  const large = images.find((image) => limits.bytes < image.size);
  if (large) return `the image ${large.name} is ${fileSize(large.size)}; the server accepts at most ${fileSize(limits.bytes)}`;
  const sizes = [...present.map(bytesOf), ...images.map((image) => image.size)];
  const sum = sizes.reduce((one, other) => one + other, 0);
  if (limits.totalBytes < sum)
    return `together, the images are ${fileSize(sum)}; the server accepts at most ${fileSize(limits.totalBytes)} in one message`;
  return undefined;
}

/** The size of the file. */
function bytesOf({ data }: Attached): number {
  return (data.length / 4) * 3 - (data.match(/=*$/)?.[0].length ?? 0);
}

/** The button that chooses image files. */
export function AttachButton({ onFiles }: { readonly onFiles: (files: readonly File[]) => void }) {
  const input = useRef<HTMLInputElement>(null);
  const chosen = ({ target }: ChangeEvent<HTMLInputElement>) => {
    onFiles([...(target.files ?? [])]);
    // The same file can be chosen again.
    target.value = "";
  };
  return (
    <>
      <input ref={input} type="file" accept={accepted} multiple hidden data-testid="image-files" onChange={chosen} />
      <button
        type="button"
        className="button attach"
        aria-label="Add images"
        title="Add images. You can also paste or drop them"
        data-testid="attach"
        onClick={() => input.current?.click()}
      >
        <Icon name="image" />
      </button>
    </>
  );
}

interface ThumbnailsProps {
  readonly images: readonly Attached[];
  readonly onRemove: (key: number) => void;
}

/** The images that will be sent, each with a button that removes it. */
export function Thumbnails({ images, onRemove }: ThumbnailsProps) {
  if (images.length === 0) return null;
  return (
    <ul className="thumbnails" aria-label="Images of the message" data-testid="thumbnails">
      {images.map(({ key, name, ...image }) => (
        <li key={key} title={name}>
          <Picture image={image} />
          <IconButton
            icon="cross"
            className="small"
            name={name ? `Remove the image ${name}` : "Remove this image"}
            data-testid="remove-image"
            onClick={() => onRemove(key)}
          />
        </li>
      ))}
    </ul>
  );
}
