import { type ChangeEvent, type ClipboardEvent, type DragEvent, useRef } from "react";

import { Icon } from "../ui/Icon.tsx";
import { type Attached, attached, readImage } from "./attached.ts";
import { formats, Picture } from "./Picture.tsx";

const accepted = Object.keys(formats).join(",");

interface Adding {
  /** Whether agents of this type accept images. `undefined`: not known yet, so the server decides. */
  readonly accepts: boolean | undefined;
  readonly add: (images: readonly Attached[]) => void;
  readonly onFailure: (failure: Error | undefined) => void;
}

/** The ways in which a form takes images: the properties of its element, and a function for chosen files. */
export function useAdding({ accepts, add, onFailure }: Adding) {
  const take = async (files: readonly File[]) => {
    onFailure(undefined);
    if (accepts === false) return onFailure(new Error("agents of this type accept no images"));
    const images = files.filter((file) => Object.hasOwn(formats, file.type));
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
          <button
            type="button"
            className="icon-button small"
            aria-label={`Remove the image ${name}`}
            data-testid="remove-image"
            onClick={() => onRemove(key)}
          >
            <Icon name="cross" />
          </button>
        </li>
      ))}
    </ul>
  );
}
