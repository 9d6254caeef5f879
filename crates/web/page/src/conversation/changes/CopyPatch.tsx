import { TokenrailError } from "@tokenrail/client";
import { useTokenrail } from "@tokenrail/client/react";
import { useEffect, useState } from "react";

import { sentence } from "../../ui/format.ts";
import { Icon } from "../../ui/Icon.tsx";
import { type CalledFile, patchOfCalls } from "./called.ts";

/** How long the button shows what it has done. */
const saidFor = 2_500;

const words = {
  copied: "Copied",
  part: "Copied, without the files that are too large",
  unknown: "Copied, without files whose changes are not fully known",
} as const;

interface Props {
  readonly agentId: string;
  /** The files from which the patch is made. Without them, it is git's. */
  readonly called?: readonly CalledFile[] | undefined;
}

export function CopyPatch({ agentId, called }: Props) {
  const client = useTokenrail();
  const [said, setSaid] = useState<string>();
  useEffect(() => {
    if (!said) return;
    const timer = setTimeout(() => setSaid(undefined), saidFor);
    return () => clearTimeout(timer);
  }, [said]);
  const read = async () => {
    if (called) {
      const { text, isPart } = patchOfCalls(called);
      return { text, outcome: words[isPart ? "unknown" : "copied"] };
    }
    const { text, truncated } = await client.patch(agentId);
    return { text, outcome: words[truncated ? "part" : "copied"] };
  };
  const copy = async () => {
    const patch = read();
    try {
      await write(patch.then(({ text }) => text));
      setSaid((await patch).outcome);
    } catch (error) {
      setSaid(error instanceof TokenrailError ? sentence(error.message) : "The browser does not allow this page to copy");
    }
  };
  return (
    <button type="button" className="button" data-testid="copy-patch" onClick={() => void copy()}>
      <Icon name={said === words.copied ? "check" : "copy"} /> <span aria-live="polite">{said ?? "Copy patch"}</span>
    </button>
  );
}

/**
 * Writes a text that is still loading into the clipboard. A browser allows that only for a short time after a click, so it
 * is asked before the text is there, if it can wait for the text.
 */
async function write(text: Promise<string>): Promise<void> {
  if (typeof ClipboardItem === "undefined" || !navigator.clipboard.write)
    return navigator.clipboard.writeText(await text);
  const blob = text.then((loaded) => new Blob([loaded], { type: "text/plain" }));
  // The reason is reported by `text`, also to a browser that does not read this.
  blob.catch(() => undefined);
  // The browser says only that it got no text.
  await Promise.all([text, navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })])]);
}
