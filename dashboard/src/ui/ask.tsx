// Form to answer a recovery's question.
import { useState } from "preact/hooks";
import { deniedReason, post } from "../api";
import { dollars } from "../format";
import type { ActionResult, AskOut } from "../wire";
import { showError, showToast } from "./toast";

export function AskForm({ ask, onAnswered }: { ask: AskOut; onAnswered: () => void }) {
  const [note, setNote] = useState("");
  const [busy, setBusy] = useState("");
  const denied = deniedReason("act");
  const answer = async (option: string, label: string) => {
    setBusy(option);
    try {
      const result = await post<ActionResult>(`incidents/${encodeURIComponent(ask.incident)}/answer`, note ? { option, note } : { option });
      showToast(result.note || `Answered: ${label}`);
      onAnswered();
    } catch (error) {
      showError(error);
    }
    setBusy("");
  };
  return (
    <div class="ask-body">
      <p>{ask.question}</p>
      {ask.estimate !== null ? <p class="muted small">Estimated cost: {dollars(ask.estimate)}</p> : null}
      {ask.note ? <p class="muted small">{ask.note}</p> : null}
      <label class="field">
        <span>Note (optional)</span>
        <input class="input" value={note} maxLength={2000} onInput={(event) => setNote(event.currentTarget.value)} />
      </label>
      <div class="actions">
        {ask.options.map((one, n) => (
          <button key={one.id} class={`button ${n === 0 ? "primary" : ""}`} disabled={busy !== "" || denied !== null} onClick={() => answer(one.id, one.label)}>
            {one.label}
          </button>
        ))}
        {denied ? <span class="disabled-reason">{denied}</span> : null}
      </div>
    </div>
  );
}
