// Keys that act without a modifier, while nobody is typing and no dialog is open.
import { useEffect, useRef } from "preact/hooks";

type Keys = Record<string, (event: KeyboardEvent) => void>;

const CHORD_MS = 1_000;

/** Bind keys; `g s` is g and then s. */
export function useKeys(keys: Keys): void {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    let first = "";
    let at = 0;
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target)) return;
      if (document.querySelector("dialog[open]")) return;
      const chord = first && Date.now() - at < CHORD_MS ? `${first} ${event.key}` : event.key;
      const act = latest.current[chord] ?? latest.current[event.key];
      first = event.key === "g" ? "g" : "";
      at = Date.now();
      if (!act || (chord.length === 1 && chord === "g")) return;
      event.preventDefault();
      act(event);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));
}
