import { signal } from "@preact/signals";
import { Dialog } from "./dialog";

const open = signal(false);

export function openHelp(): void {
  open.value = true;
}

const KEYS: [string[], string][] = [
  [["j", "k"], "next, previous row"],
  [["Enter"], "open it"],
  [["/"], "search"],
  [["p"], "pause the live list, and go on"],
  [["r"], "retry the session"],
  [["e"], "escalate the session"],
  [["g", "s"], "sessions"],
  [["g", "i"], "inbox"],
  [["g", "n"], "incidents"],
  [["g", "a"], "analytics"],
  [["g", "p"], "policies"],
  [["g", "c"], "crew"],
  [["?"], "this list"],
];

export function Help() {
  if (!open.value) return null;
  return (
    <Dialog title="Keyboard" close={() => (open.value = false)}>
      <div class="keys">
        {KEYS.map(([keys, does]) => (
          <>
            <span>
              {keys.map((key) => (
                <>
                  <kbd>{key}</kbd>{" "}
                </>
              ))}
            </span>
            <span>{does}</span>
          </>
        ))}
      </div>
    </Dialog>
  );
}
