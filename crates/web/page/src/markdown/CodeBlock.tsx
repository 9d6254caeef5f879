import { memo } from "react";

import { Chunks } from "../ui/Chunks.tsx";
import { CopyButton } from "../ui/CopyButton.tsx";
import { Highlighted } from "./highlight.tsx";

/** Growing code is coloured again with each token, so only code that takes a small part of a frame is coloured. */
const longestGrowingCode = 4_000;

interface Props {
  readonly text: string;
  readonly language?: string | undefined;
  readonly growing?: boolean;
}

export const CodeBlock = memo(function CodeBlock({ text, language, growing = false }: Props) {
  const plain = growing && text.length > longestGrowingCode;
  return (
    <figure className="code">
      <figcaption>
        <span>{language ?? "text"}</span>
        <CopyButton text={text} what="code" />
      </figcaption>
      <pre tabIndex={0}>
        <code>{plain ? <Chunks text={text} /> : <Highlighted text={text} language={language?.toLowerCase()} />}</code>
      </pre>
    </figure>
  );
});
