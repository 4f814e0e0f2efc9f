// Dialog "Retry with error context": shows the prompt and lets the user edit it before it is sent.
import { useState } from "preact/hooks";
import { get, deniedReason, post } from "../api";
import { count } from "../format";
import { useResource } from "../live/use_resource";
import type { ActionResult, RetryIn, RetryPreview } from "../wire";
import { Dialog } from "./dialog";
import { LoadError } from "./empty";
import { showError, showToast } from "./toast";

type Mode = "context" | "plain" | "model";

const MODES: { mode: Mode; label: string; description: string }[] = [
  { mode: "context", label: "With error context", description: "Adds the error to the prompt of the next attempt." },
  { mode: "plain", label: "Unchanged", description: "Sends the recorded request again." },
  { mode: "model", label: "On another model", description: "Sends the recorded request to the model you choose." },
];

export function RetryDialog({ session, close }: { session: string; close: () => void }) {
  const path = `sessions/${encodeURIComponent(session)}`;
  const preview = useResource(path, (signal) => get<RetryPreview>(`${path}/retry-preview`, {}, signal));
  const [mode, setMode] = useState<Mode>("context");
  const [prompt, setPrompt] = useState<string | null>(null);
  const [model, setModel] = useState("");
  const [busy, setBusy] = useState(false);

  const data = preview.data;
  const others = data?.models.filter((name) => name !== data.model) ?? [];
  const chosen = model || others[0] || "";
  const disabledReason = deniedReason("act") ?? (data && !data.possible ? data.whyNot : null) ?? (mode === "model" && !chosen ? "The policy lists no other model." : null);

  const send = async () => {
    const edited = prompt !== null && prompt !== data?.prompt;
    const body: RetryIn =
      mode === "plain" ? { mode } : mode === "model" ? { mode, model: chosen } : edited ? { mode: "prompt", prompt } : { mode };
    setBusy(true);
    try {
      const result = await post<ActionResult>(`${path}/retry`, body);
      showToast(result.note || "Retry requested");
      close();
    } catch (error) {
      showError(error);
      setBusy(false);
    }
  };

  return (
    <Dialog title="Retry" close={close}>
      {preview.error ? <LoadError error={preview.error} retry={preview.reload} /> : null}
      <fieldset class="choices">
        <legend class="visually-hidden">Retry mode</legend>
        {MODES.map((one) => (
          <label key={one.mode} class="choice">
            <input type="radio" name="mode" checked={mode === one.mode} onChange={() => setMode(one.mode)} />
            <span>
              <b>{one.label}</b>
              <small>{one.description}</small>
            </span>
          </label>
        ))}
      </fieldset>
      {mode === "context" ? (
        <label class="field">
          <span>Prompt to send</span>
          <textarea class="textarea" rows={11} value={prompt ?? data?.prompt ?? ""} onInput={(event) => setPrompt(event.currentTarget.value)} disabled={!data} />
          <small>
            {count((prompt ?? data?.prompt ?? "").length)} characters
            {data?.model ? ` · to ${data.model}` : ""}
            {prompt !== null && prompt !== data?.prompt ? " · edited" : ""}
          </small>
        </label>
      ) : null}
      {mode === "model" ? (
        <label class="field">
          <span>Model</span>
          <select class="select" value={chosen} onChange={(event) => setModel(event.currentTarget.value)}>
            {others.map((name) => (
              <option key={name} value={name}>{name}</option>
            ))}
          </select>
        </label>
      ) : null}
      <footer>
        {disabledReason ? <span class="disabled-reason">{disabledReason}</span> : null}
        <button class="button" onClick={close}>Cancel</button>
        <button class="button primary" disabled={busy || !data || disabledReason !== null} onClick={send}>
          {busy ? "Sending" : "Retry"}
        </button>
      </footer>
    </Dialog>
  );
}
