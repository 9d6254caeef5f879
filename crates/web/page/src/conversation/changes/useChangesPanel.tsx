import type { Agent } from "@tokenrail/client";
import { useCallback, useLayoutEffect, useRef, useState } from "react";

import { useShortcut } from "../../ui/shortcuts.tsx";
import { useAskedTo } from "../orders.ts";
import type { Row } from "../row.ts";
import { ChangesButton } from "./ChangesButton.tsx";
import { ChangesPanel } from "./ChangesPanel.tsx";
import { useChanges } from "./useChanges.ts";

/** The list of changed files, and the button that opens it. A replay has none, because the files are those of now. */
export function useChangesPanel(agent: Agent, rows: readonly Row[], live: boolean) {
  const [isOpen, setOpen] = useState(false);
  const known = useChanges(agent, rows, isOpen && live, live);
  const button = useRef<HTMLButtonElement>(null);
  const toggle = useCallback(() => setOpen((open) => !open), []);
  const isClosed = useRef(false);
  const close = useCallback(() => {
    isClosed.current = true;
    setOpen(false);
  }, []);
  // Until the list is gone, it may cover the button, which cannot have the focus then.
  useLayoutEffect(() => {
    if (isOpen || !isClosed.current) return;
    isClosed.current = false;
    button.current?.focus();
  }, [isOpen]);
  useShortcut("f", toggle, live);
  useAskedTo("changes", toggle);
  useShortcut("Escape", close, live && isOpen);
  if (!live) return { button: undefined, panel: undefined };
  return {
    button: <ChangesButton ref={button} known={known} isOpen={isOpen} onClick={toggle} />,
    panel: isOpen && <ChangesPanel agentId={agent.id} known={known} onClose={close} />,
  };
}
