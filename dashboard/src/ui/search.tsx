// Search box of a list; its text is the parameter `q` of the page.
import { useRef } from "preact/hooks";
import { updateParams } from "../route";
import { Icon } from "./icons";

const TYPING_MS = 200;

export function Search({ label, value, input }: { label: string; value: string; input: { current: HTMLInputElement | null } }) {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const updateQuery = (text: string) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => updateParams({ q: text.trim() }), TYPING_MS);
  };
  return (
    <label class="search">
      <span class="visually-hidden">{label}</span>
      <Icon name="search" size={16} />
      <input ref={input} class="input" type="search" placeholder="Search" value={value} onInput={(event) => updateQuery(event.currentTarget.value)}
        onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()} />
    </label>
  );
}
