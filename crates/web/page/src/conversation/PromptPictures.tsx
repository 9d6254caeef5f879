import { useTokenrail } from "@tokenrail/client/react";
import { useEffect, useState } from "react";

import type { ImageData } from "../content/images.ts";
import { formats, Picture } from "../content/Picture.tsx";
import { readImage } from "../prompt/attached.ts";
import { fileSize } from "../ui/format.ts";
import { useAgentId } from "./agent-id.ts";
import type { PromptRow } from "./row.ts";

/** The images of a user message. */
export function PromptPictures({ row: { turn, images = [] } }: { readonly row: PromptRow }) {
  if (turn === undefined) return null;
  return images.map(({ mediaType, bytes }, position) => (
    <PromptPicture key={position} turn={turn} position={position} what={`${formats[mediaType] ?? "image"}, ${fileSize(bytes)}`} />
  ));
}

interface Props {
  readonly turn: number;
  readonly position: number;
  readonly what: string;
}

function PromptPicture({ turn, position, what }: Props) {
  const client = useTokenrail();
  const agentId = useAgentId();
  const [image, setImage] = useState<ImageData>();
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    const leaving = new AbortController();
    const asked = client.promptImage(agentId, turn, position, { signal: leaving.signal }).then(readImage);
    asked.then(
      (read) => leaving.signal.aborted || setImage(read),
      () => leaving.signal.aborted || setFailed(true),
    );
    return () => leaving.abort();
  }, [client, agentId, turn, position]);
  if (image) return <Picture image={image} />;
  return (
    <p className="hint" data-testid="no-picture">
      {failed ? `Cannot load this image (${what}). Reload the page to try again.` : `Loading an image (${what})…`}
    </p>
  );
}
