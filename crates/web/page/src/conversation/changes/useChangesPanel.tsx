import type { Agent } from "@tokenrail/client";
import { useState } from "react";

import { useShortcut } from "../../app/shortcuts.tsx";
import type { Row } from "../row.ts";
import { ChangesButton } from "./ChangesButton.tsx";
import { ChangesPanel } from "./ChangesPanel.tsx";
import { useChanges } from "./useChanges.ts";

/** The list of changed files, and the button that opens it. A replay has none, because the files are those of now. */
export function useChangesPanel(agent: Agent, rows: readonly Row[], live: boolean) {
  const [isOpen, setOpen] = useState(false);
  const known = useChanges(agent, rows, isOpen && live);
  const toggle = () => setOpen(!isOpen);
  useShortcut("f", toggle, live);
  if (!live) return { button: undefined, panel: undefined };
  return {
    button: <ChangesButton known={known} isOpen={isOpen} onClick={toggle} />,
    panel: isOpen && <ChangesPanel agent={agent} known={known} onClose={() => setOpen(false)} />,
  };
}
