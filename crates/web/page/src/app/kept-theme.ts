// This module is a part of `app.js`, so that the first paint already has the right colours.

const key = "tokenrail-theme";
export const themes = ["system", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

/** The theme if the browser allows no storage. */
let unkept: Theme = "system";

export function keptTheme(): Theme {
  try {
    const kept = localStorage.getItem(key);
    return themes.find((theme) => theme === kept) ?? "system";
  } catch {
    return unkept;
  }
}

/** Shows the theme, and keeps it for all tabs of this browser. */
export function applyTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  unkept = theme;
  try {
    if (theme !== keptTheme()) localStorage.setItem(key, theme);
  } catch {
    // The theme then applies until the page is loaded again.
  }
}
