import { useEffect, useState } from "react";

import { useShortcut } from "../ui/shortcuts.tsx";
import { useAskedTo } from "./orders.ts";
import { Toggle } from "./Toggle.tsx";

const key = "tokenrail-details";

/** Shows or hides what only developers need: the types and the numbers of events. The style sheet does it. */
export function DetailsSwitch() {
  const [on, setOn] = useState(() => sessionStorage.getItem(key) === "on");
  useEffect(() => {
    document.documentElement.toggleAttribute("data-details", on);
    sessionStorage.setItem(key, on ? "on" : "off");
  }, [on]);
  useShortcut("d", () => setOn(!on));
  useAskedTo("details", () => setOn(!on));
  return <Toggle icon="braces" id="details" name="Developer details" hint="Developer details (D)" on={on} set={setOn} />;
}
