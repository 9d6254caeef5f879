import { useEffect, useState } from "react";

import { Icon, type IconName } from "../ui/Icon.tsx";

const key = "tokenrail-theme";
const themes = ["system", "light", "dark"] as const;
type Theme = (typeof themes)[number];

const icons: Record<Theme, IconName> = { system: "screen", light: "sun", dark: "moon" };

/** Switches between the system's theme, light and dark. This browser remembers the choice. */
export function ThemeButton() {
  const [theme, setTheme] = useState(keptTheme);
  useEffect(() => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    localStorage.setItem(key, theme);
  }, [theme]);
  const next = themes[(themes.indexOf(theme) + 1) % themes.length] ?? "system";
  const label = `Theme: ${theme}. Switch to ${next}`;
  return (
    <button
      type="button"
      className="icon-button"
      data-testid="theme"
      aria-label={label}
      title={label}
      onClick={() => setTheme(next)}
    >
      <Icon name={icons[theme]} />
    </button>
  );
}

function keptTheme(): Theme {
  const kept = localStorage.getItem(key);
  return themes.find((theme) => theme === kept) ?? "system";
}
