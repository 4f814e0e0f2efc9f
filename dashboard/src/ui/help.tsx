import { signal } from "@preact/signals";
import { hasCrew, hasFleet } from "../live/inbox";
import { Dialog } from "./dialog";
import { openGuide } from "./guide";

const open = signal(false);

export function openHelp(): void {
  open.value = true;
}

const KEYS: [string[], string][] = [
  [["j", "k"], "next row, previous row, of sessions or incidents"],
  [["Enter"], "open the selected session or incident"],
  [["/"], "search sessions, incidents or tasks"],
  [["p"], "pause or resume the list of sessions"],
  [["r"], "retry the session"],
  [["e"], "escalate the session"],
  [["g", "s"], "go to sessions"],
  [["g", "i"], "go to inbox"],
  [["g", "n"], "go to incidents"],
  [["g", "a"], "go to analytics"],
  [["g", "p"], "go to policies"],
  [["g", "b"], "go to budgets"],
  [["g", "l"], "go to alerts"],
];
const CREW_KEYS: [string[], string] = [["g", "c"], "go to crew"];
const FLEET_KEYS: [string[], string] = [["g", "f"], "go to fleet"];
const HELP_KEYS: [string[], string] = [["?"], "show this list"];

/** Returns the shortcuts of the pages that are in the menu. */
function shortcuts(): [string[], string][] {
  return [...KEYS, ...(hasCrew.value ? [CREW_KEYS] : []), ...(hasFleet.value ? [FLEET_KEYS] : []), HELP_KEYS];
}

export function Help() {
  if (!open.value) return null;
  return (
    <Dialog title="Keyboard shortcuts" close={() => (open.value = false)}>
      <div class="keys">
        {shortcuts().map(([keys, description]) => (
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
      <p class="actions">
        <button class="button" onClick={() => { open.value = false; openGuide(); }}>Show the first steps</button>
      </p>
    </Dialog>
  );
}
