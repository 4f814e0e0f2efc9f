// Keyboard shortcuts without modifiers; inactive while the user types or a dialog is open.
import { useEffect, useRef } from "preact/hooks";

type KeyBindings = Record<string, (event: KeyboardEvent) => void>;

const CHORD_MS = 1_000;

/** Binds shortcuts. `g s` means g, then s. */
export function useKeys(keys: KeyBindings): void {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    let prefix = "";
    let prefixAt = 0;
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target)) return;
      if (document.querySelector("dialog[open]")) return;
      const chord = prefix && Date.now() - prefixAt < CHORD_MS ? `${prefix} ${event.key}` : event.key;
      const handler = latest.current[chord] ?? latest.current[event.key];
      prefix = event.key === "g" ? "g" : "";
      prefixAt = Date.now();
      if (!handler || (chord.length === 1 && chord === "g")) return;
      event.preventDefault();
      handler(event);
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));
}
