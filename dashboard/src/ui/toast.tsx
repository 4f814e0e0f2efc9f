// Toasts: short results of user actions. Errors stay until they are dismissed.
import { signal } from "@preact/signals";
import { Icon } from "./icons";

interface Toast {
  id: number;
  text: string;
  isError: boolean;
}

const toasts = signal<Toast[]>([]);
let next = 1;

export function showToast(text: string, isError = false): void {
  const id = next++;
  toasts.value = [...toasts.value.slice(-3), { id, text, isError }];
  if (!isError) setTimeout(() => dismiss(id), 5_000);
}

export function showError(error: unknown): void {
  showToast(error instanceof Error ? error.message : String(error), true);
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, isError }) => (
        <div key={id} class={`toast ${isError ? "failed" : ""}`}>
          <span>{text}</span>
          <button class="button plain tiny" onClick={() => dismiss(id)} aria-label="Dismiss">
            <Icon name="close" size={14} />
          </button>
        </div>
      ))}
    </div>
  );
}
