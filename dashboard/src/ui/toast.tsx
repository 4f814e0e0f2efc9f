// Short answers to what the reader did. A refusal stays until it is put away.
import { signal } from "@preact/signals";
import { Icon } from "./icons";

interface Toast {
  id: number;
  text: string;
  bad: boolean;
}

const toasts = signal<Toast[]>([]);
let next = 1;

export function say(text: string, bad = false): void {
  const id = next++;
  toasts.value = [...toasts.value.slice(-3), { id, text, bad }];
  if (!bad) setTimeout(() => drop(id), 5_000);
}

export function complain(error: unknown): void {
  say(error instanceof Error ? error.message : String(error), true);
}

function drop(id: number): void {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, bad }) => (
        <div key={id} class={`toast ${bad ? "failed" : ""}`}>
          <span>{text}</span>
          <button class="button plain tiny" onClick={() => drop(id)} aria-label="Dismiss">
            <Icon name="close" size={14} />
          </button>
        </div>
      ))}
    </div>
  );
}
