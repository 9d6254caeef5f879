import { useEffect, useState } from "react";

import { IconButton } from "./IconButton.tsx";

/** How long the button shows that copying succeeded. */
const saidFor = 1_500;

interface Props {
  readonly text: string | (() => string);
  readonly what: string;
}

export function CopyButton({ text, what }: Props) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), saidFor);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = async () => {
    await navigator.clipboard?.writeText(typeof text === "string" ? text : text());
    setCopied(true);
  };
  return (
    <IconButton
      icon={copied ? "check" : "copy"}
      className="small"
      onClick={copy}
      name={copied ? "Copied" : `Copy ${what}`}
      title={`Copy ${what}`}
    />
  );
}
