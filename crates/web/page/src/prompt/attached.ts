// The images that the user has added to a message and not sent. Only the memory of the tab has them: they are too large for
// its storage. They outlive the composer, as the text does.
import type { Client, NewImage } from "@tokenrail/client";
import { useCallback, useSyncExternalStore } from "react";

import type { ImageData } from "../content/images.ts";

/** An image of a message that is not sent. */
export interface Attached extends ImageData {
  /** Different for each image. */
  readonly key: number;
  /** The name of the file. Absent for an image of a message that is edited. */
  readonly name?: string;
}

const none: readonly Attached[] = [];
const images = new Map<string, readonly Attached[]>();
const listeners = new Set<() => void>();
let lastKey = 0;

type Change = (to: (now: readonly Attached[]) => readonly Attached[]) => void;

/** The images for an agent, and a function that changes them. The function is the same for the same agent. */
export function useAttached(agentId: string): [images: readonly Attached[], change: Change] {
  const now = useSyncExternalStore(
    subscribe,
    useCallback(() => images.get(agentId) ?? none, [agentId]),
  );
  const change = useCallback<Change>((to) => keep(agentId, to(images.get(agentId) ?? none)), [agentId]);
  return [now, change];
}

export function attached(image: ImageData, name?: string): Attached {
  lastKey += 1;
  return { ...image, ...(name !== undefined && { name }), key: lastKey };
}

/** Forgets all of them. The next user of the tab must not see them. */
export function forgetAttached(): void {
  images.clear();
  for (const listener of [...listeners]) listener();
}

/** The images as the server takes them. */
export function sendable(list: readonly ImageData[]): NewImage[] {
  return list.map(({ mimeType, data }) => ({ mediaType: mimeType, data }));
}

/** The images of a message that was sent. */
export function imagesOf(client: Client, agentId: string, turn: number, count: number): Promise<ImageData[]> {
  const positions = Array.from({ length: count }, (_, position) => position);
  return Promise.all(positions.map(async (position) => readImage(await client.promptImage(agentId, turn, position))));
}

/** A file as base64. */
export function readImage(file: Blob): Promise<ImageData> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => {
      const url = String(reader.result);
      resolve({ mimeType: file.type, data: url.slice(url.indexOf(",") + 1) });
    };
    reader.onerror = () => reject(new Error("the browser cannot read the image; add it again"));
    reader.readAsDataURL(file);
  });
}

function keep(agentId: string, list: readonly Attached[]): void {
  if (list.length > 0) images.set(agentId, list);
  else images.delete(agentId);
  for (const listener of [...listeners]) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
