import { signal } from "@preact/signals";
import { Icon } from "./icons";

type Theme = "light" | "dark" | "system";

const theme = signal<Theme>((document.documentElement.dataset["theme"] as Theme | undefined) ?? "system");
const system = matchMedia("(prefers-color-scheme: dark)");

function choose(next: Theme): void {
  theme.value = next;
  if (next === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = next;
  try {
    localStorage.setItem("rung.theme", next);
  } catch {
    // Chosen for this page only.
  }
}

export function ThemeSwitch() {
  const dark = theme.value === "dark" || (theme.value === "system" && system.matches);
  return (
    <button class="button plain tiny" onClick={() => choose(dark ? "light" : "dark")} aria-label={dark ? "Use the light theme" : "Use the dark theme"} title={dark ? "Light" : "Dark"}>
      <Icon name={dark ? "sun" : "moon"} />
    </button>
  );
}
