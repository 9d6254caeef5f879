import { useSyncExternalStore } from "react";

import type { IconName } from "../ui/Icon.tsx";
import { IconButton } from "../ui/IconButton.tsx";
import { applyTheme, keptTheme, type Theme, themes } from "./kept-theme.ts";

const icons: Record<Theme, IconName> = { system: "screen", light: "sun", dark: "moon" };
const listeners = new Set<() => void>();

/** The theme of all tabs of this browser. */
export function useTheme(): [theme: Theme, setTheme: (theme: Theme) => void] {
  return [useSyncExternalStore(subscribe, keptTheme), setTheme];
}

function setTheme(theme: Theme): void {
  applyTheme(theme);
  for (const listener of [...listeners]) listener();
}

/** Another tab may change the theme too. */
function subscribe(listener: () => void): () => void {
  const changed = () => {
    applyTheme(keptTheme());
    listener();
  };
  listeners.add(listener);
  window.addEventListener("storage", changed);
  return () => {
    listeners.delete(listener);
    window.removeEventListener("storage", changed);
  };
}

/** Switches between the system's theme, light and dark. */
export function ThemeButton() {
  const [theme, set] = useTheme();
  const next = themes[(themes.indexOf(theme) + 1) % themes.length] ?? "system";
  const label = `Theme: ${theme}. Switch to ${next}`;
  return (
    <IconButton icon={icons[theme]} data-testid="theme" name={label} title={label} onClick={() => set(next)} />
  );
}
