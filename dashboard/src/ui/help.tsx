import { signal } from "@preact/signals";
import { Dialog } from "./dialog";

const open = signal(false);

export function openHelp(): void {
  open.value = true;
}

const KEYS: [string[], string][] = [
  [["j", "k"], "next row, previous row"],
  [["Enter"], "open the selected row"],
  [["/"], "search"],
  [["p"], "pause or resume live updates"],
  [["r"], "retry the session"],
  [["e"], "escalate the session"],
  [["g", "s"], "go to sessions"],
  [["g", "i"], "go to inbox"],
  [["g", "n"], "go to incidents"],
  [["g", "a"], "go to analytics"],
  [["g", "p"], "go to policies"],
  [["g", "c"], "go to crew"],
  [["g", "f"], "go to fleet"],
  [["?"], "show this list"],
];

export function Help() {
  if (!open.value) return null;
  return (
    <Dialog title="Keyboard shortcuts" close={() => (open.value = false)}>
      <div class="keys">
        {KEYS.map(([keys, description]) => (
          <>
            <span>
              {keys.map((key) => (
                <>
                  <kbd>{key}</kbd>{" "}
                </>
              ))}
            </span>
            <span>{description}</span>
          </>
        ))}
      </div>
    </Dialog>
  );
}
