import { signal } from "@preact/signals";
import { Icon } from "./icons";

type Theme = "light" | "dark" | "system";

const theme = signal<Theme>((document.documentElement.dataset["theme"] as Theme | undefined) ?? "system");
const prefersDark = matchMedia("(prefers-color-scheme: dark)");

function setTheme(next: Theme): void {
  theme.value = next;
  if (next === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = next;
  try {
    localStorage.setItem("rung.theme", next);
  } catch {
    // Storage is not available: the choice lasts until the page is reloaded.
  }
}

export function ThemeSwitch() {
  const dark = theme.value === "dark" || (theme.value === "system" && prefersDark.matches);
  return (
    <button class="button plain tiny" onClick={() => setTheme(dark ? "light" : "dark")} aria-label={dark ? "Use the light theme" : "Use the dark theme"} title={dark ? "Light" : "Dark"}>
      <Icon name={dark ? "sun" : "moon"} />
    </button>
  );
}
