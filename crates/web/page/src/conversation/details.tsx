import { useEffect, useState } from "react";

import { useShortcut } from "../app/shortcuts.tsx";
import { Icon } from "../ui/Icon.tsx";

const key = "tokenrail-details";

/** Shows or hides what only developers need: the types and the numbers of events. The style sheet does it. */
export function DetailsSwitch() {
  const [on, setOn] = useState(() => sessionStorage.getItem(key) === "on");
  useEffect(() => {
    document.documentElement.toggleAttribute("data-details", on);
    sessionStorage.setItem(key, on ? "on" : "off");
  }, [on]);
  useShortcut("d", () => setOn(!on));
  return (
    <button
      type="button"
      className="icon-button"
      aria-label="Developer details"
      title="Developer details (D)"
      aria-pressed={on}
      data-testid="toggle-details"
      onClick={() => setOn(!on)}
    >
      <Icon name="braces" />
    </button>
  );
}
