// Runs before the first paint, so that the page does not flash in the wrong theme.
try {
  const theme = localStorage.getItem("rung.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset["theme"] = theme;
} catch {
  // Storage is not available: use the theme of the system.
}
export {};
