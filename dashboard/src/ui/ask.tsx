// A question that waits for a person, answered where it stands.
import { useState } from "preact/hooks";
import { mayNot, post } from "../api";
import { dollars } from "../format";
import type { AskOut, Done } from "../wire";
import { complain, say } from "./toast";

export function Ask({ ask, answered }: { ask: AskOut; answered: () => void }) {
  const [note, setNote] = useState("");
  const [busy, setBusy] = useState("");
  const refused = mayNot("act");
  const answer = async (option: string, label: string) => {
    setBusy(option);
    try {
      const done = await post<Done>(`incidents/${encodeURIComponent(ask.incident)}/answer`, note ? { option, note } : { option });
      say(done.note || `Answered: ${label}`);
      answered();
    } catch (error) {
      complain(error);
    }
    setBusy("");
  };
  return (
    <div class="ask-body">
      <p>{ask.question}</p>
      {ask.estimate !== null ? <p class="muted small">Estimated cost: {dollars(ask.estimate)}</p> : null}
      <label class="field">
        <span>Note (optional)</span>
        <input class="input" value={note} maxLength={2000} onInput={(event) => setNote(event.currentTarget.value)} />
      </label>
      <div class="actions">
        {ask.options.map((one, n) => (
          <button key={one.id} class={`button ${n === 0 ? "primary" : ""}`} disabled={busy !== "" || refused !== null} onClick={() => answer(one.id, one.label)}>
            {one.label}
          </button>
        ))}
        {refused ? <span class="why-not">{refused}</span> : null}
      </div>
    </div>
  );
}
