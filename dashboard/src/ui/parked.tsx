// Components of work that is parked until a limit reopens: the time, and the actions that end the wait.
import { useState } from "preact/hooks";
import { deniedReason, post } from "../api";
import { fullDateTime, shortMoment } from "../format";
import { now } from "../live/clock";
import type { ActionResult } from "../wire";
import { Icon } from "./icons";
import { Countdown } from "./parts";
import { showError, showToast } from "./toast";

/** "until 16:20, in 2 h 10 min", in the time zone of the browser. */
export function Until({ at }: { at: number }) {
  return (
    <>
      until <time title={fullDateTime(at)} dateTime={new Date(at * 1000).toISOString()}>{shortMoment(at, now.value)}</time>, <Countdown until={at} />
    </>
  );
}

/** Button that ends the wait of a parked recovery or of a crew's pool. */
export function WakeButton({ path, body, tiny, onWoken }: { path: string; body?: { pool: string }; tiny?: boolean; onWoken?: () => void }) {
  const [busy, setBusy] = useState(false);
  const denied = deniedReason("act");
  const wake = async () => {
    setBusy(true);
    try {
      const result = await post<ActionResult>(path, body);
      showToast(result.note || "Woken");
      onWoken?.();
    } catch (error) {
      showError(error);
    }
    setBusy(false);
  };
  return (
    <button class={`button ${tiny ? "tiny" : ""}`} disabled={busy || denied !== null} title={denied ?? ""} onClick={wake}>
      <Icon name="play" size={tiny ? 12 : 14} /> Wake now
    </button>
  );
}

export const wakePath = (incident: string): string => `incidents/${encodeURIComponent(incident)}/wake`;
