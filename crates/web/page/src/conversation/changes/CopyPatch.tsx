import { useTokenrail } from "@tokenrail/client/react";
import { useEffect, useState } from "react";

import { Icon } from "../../ui/Icon.tsx";
import { type CalledFile, patchOfCalls } from "./called.ts";

/** How long the button shows what it has done. */
const saidFor = 2_500;

const words = { copied: "Copied", part: "Copied; large files are missing", failed: "Cannot copy" } as const;

interface Props {
  readonly agentId: string;
  /** The files from which the patch is made. Without them, it is git's. */
  readonly called?: readonly CalledFile[] | undefined;
}

export function CopyPatch({ agentId, called }: Props) {
  const client = useTokenrail();
  const [said, setSaid] = useState<keyof typeof words>();
  useEffect(() => {
    if (!said) return;
    const timer = setTimeout(() => setSaid(undefined), saidFor);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = async () => {
    try {
      const patch = called ? { text: patchOfCalls(called), truncated: false } : await client.patch(agentId);
      await navigator.clipboard.writeText(patch.text);
      setSaid(patch.truncated ? "part" : "copied");
    } catch {
      setSaid("failed");
    }
  };
  return (
    <button type="button" className="button" data-testid="copy-patch" onClick={() => void copy()}>
      <Icon name={said === "copied" ? "check" : "copy"} /> <span aria-live="polite">{said ? words[said] : "Copy patch"}</span>
    </button>
  );
}
