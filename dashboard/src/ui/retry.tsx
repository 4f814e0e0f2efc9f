// Dialog "Retry with error context": shows the prompt and lets the user edit it before it is sent.
import { useState } from "preact/hooks";
import { get, deniedReason, post } from "../api";
import { count } from "../format";
import { useResource } from "../live/use_resource";
import type { RetryIn, RetryOut, RetryPreview } from "../wire";
import { Dialog } from "./dialog";
import { LoadError } from "./empty";
import { Estimate } from "./estimate";
import { showError, showToast } from "./toast";

type Mode = "context" | "plain" | "model";

const MODES: { mode: Mode; label: string; description: string }[] = [
  { mode: "context", label: "With error context", description: "Adds the error to the prompt of the next attempt." },
  { mode: "plain", label: "Unchanged", description: "Sends the recorded request again." },
  { mode: "model", label: "On another model", description: "Sends the recorded request to the model you choose." },
];

export function RetryDialog({ session, close }: { session: string; close: () => void }) {
  const path = `sessions/${encodeURIComponent(session)}`;
  const [mode, setMode] = useState<Mode>("context");
  const [prompt, setPrompt] = useState<string | null>(null);
  const [model, setModel] = useState("");
  const [key, setKey] = useState("");
  const [quote, setQuote] = useState<RetryOut | null>(null);
  const [busy, setBusy] = useState(false);
  const preview = useResource(path, (signal) => get<RetryPreview>(`${path}/retry-preview`, {}, signal));
  const data = preview.data;
  const others = data?.models.filter((name) => name !== data.model) ?? [];
  const chosen = model || others[0] || "";
  const on = mode === "model" ? chosen : "";
  const priced = useResource(on ? `${path} ${on}` : null, (signal) => get<RetryPreview>(`${path}/retry-preview`, { model: on }, signal));
  const estimate = on ? priced.data : data;
  const needsKey = data?.needs.includes("apiKey") ?? false;
  const disabledReason = deniedReason("act") ?? (data && !data.possible ? data.whyNot : null) ?? (mode === "model" && !chosen ? "The policy lists no other model." : null) ?? (needsKey && !key ? "Needs a key for the upstream." : null);
  const choose = (change: () => void) => {
    setQuote(null);
    change();
  };

  const send = async () => {
    const edited = prompt !== null && prompt !== data?.prompt;
    const how: RetryIn =
      mode === "plain" ? { mode } : mode === "model" ? { mode, model: chosen } : edited ? { mode: "prompt", prompt } : { mode };
    const body: RetryIn = { ...how, ...(key ? { apiKey: key } : {}), ...(quote?.token ? { confirm: quote.token } : {}) };
    setBusy(true);
    try {
      const result = await post<RetryOut>(`${path}/retry`, body);
      if (result.how === "estimated") {
        setQuote(result);
        setBusy(false);
        return;
      }
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
            <input type="radio" name="mode" checked={mode === one.mode} onChange={() => choose(() => setMode(one.mode))} />
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
          <textarea class="textarea" rows={11} value={prompt ?? data?.prompt ?? ""} placeholder={data || preview.error ? "" : "Loading"} onInput={(event) => setPrompt(event.currentTarget.value)} disabled={!data} />
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
          <select class="select" value={chosen} onChange={(event) => choose(() => setModel(event.currentTarget.value))}>
            {others.map((name) => (
              <option key={name} value={name}>{name}</option>
            ))}
          </select>
        </label>
      ) : null}
      {needsKey ? (
        <label class="field">
          <span>Key for the upstream</span>
          <input class="input" type="password" autocomplete="off" value={key} onInput={(event) => setKey(event.currentTarget.value)} />
          <small>The client used its own key, which is not stored. This one is used for this retry only.</small>
        </label>
      ) : null}
      {estimate ? <Estimate quote={quote ?? estimate} /> : null}
      {quote ? <p class="notice" role="status">This model may cost more. Confirm to retry on {quote.toModel}.</p> : null}
      <footer>
        {disabledReason ? <span class="disabled-reason">{disabledReason}</span> : null}
        <button class="button" onClick={close}>Cancel</button>
        <button class="button primary" disabled={busy || !data || disabledReason !== null} onClick={send}>
          {busy ? "Sending" : quote ? "Confirm and retry" : "Retry"}
        </button>
      </footer>
    </Dialog>
  );
}
