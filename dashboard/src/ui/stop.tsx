// Button that stops a recovery.
import { useState } from "preact/hooks";
import { deniedReason, post } from "../api";
import type { ActionResult } from "../wire";
import { Icon } from "./icons";
import { showError, showToast } from "./toast";

/** Button that stops a recovery after a confirmation. Shows why it is disabled; a tiny one does so only in its title. */
export function StopButton({ incident, tiny, disabledReason = null, onStopped }: { incident: string; tiny?: boolean; disabledReason?: string | null; onStopped?: () => void }) {
  const [busy, setBusy] = useState(false);
  const reason = deniedReason("act") ?? disabledReason;
  const stop = async () => {
    if (!confirm("Stop this recovery? Completed work is kept.")) return;
    setBusy(true);
    try {
      const result = await post<ActionResult>(`incidents/${encodeURIComponent(incident)}/cancel`);
      showToast(result.note || "The recovery stops at its next step");
      onStopped?.();
    } catch (error) {
      showError(error);
    }
    setBusy(false);
  };
  return (
    <>
      <button class={`button danger ${tiny ? "tiny" : ""}`} disabled={busy || reason !== null} title={reason ?? ""} onClick={stop}>
        <Icon name="stop" size={tiny ? 12 : 14} /> Stop
      </button>
      {reason && !tiny ? <span class="disabled-reason">{reason}</span> : null}
    </>
  );
}
