// Dialog for escalating a session to another model. Shows the estimated cost and the remaining budget first.
import { useState } from "preact/hooks";
import { deniedReason, me, post } from "../api";
import { dollars } from "../format";
import { useResource } from "../live/use_resource";
import { hrefTo } from "../route";
import type { EscalateOut } from "../wire";
import { Dialog } from "./dialog";
import { Estimate } from "./estimate";
import { Icon } from "./icons";
import { showError, showToast } from "./toast";

export function EscalateDialog({ session, close }: { session: string; close: () => void }) {
  const path = `sessions/${encodeURIComponent(session)}/escalate`;
  const denied = deniedReason("act");
  const [to, setTo] = useState("");
  const [busy, setBusy] = useState(false);
  const estimate = useResource(denied ? null : `${path} ${to}`, () => post<EscalateOut>(path, to ? { toModel: to } : {}));
  const data = estimate.data;
  const exceedsBudget = data?.costEstimate != null && data.budgetLeft !== null && data.costEstimate > data.budgetLeft;
  const models = [...new Set([...(data ? [data.toModel] : to ? [to] : []), ...(me.value?.models ?? [])])].filter((name) => name && name !== data?.fromModel);

  const confirm = async () => {
    setBusy(true);
    try {
      const result = await post<EscalateOut>(path, { confirm: data?.token });
      showToast(result.note || `The session now uses ${result.toModel}`);
      close();
    } catch (error) {
      showError(error);
      setBusy(false);
    }
  };

  return (
    <Dialog title="Escalate to another model" close={close}>
      <div class="model-transition">
        <div>
          <small>from</small>
          <b class="truncate">{data?.fromModel || "current model"}</b>
        </div>
        <Icon name="arrow" size={20} />
        <label>
          <small>to</small>
          <select class="select" value={data?.toModel ?? to} onChange={(event) => setTo(event.currentTarget.value)}>
            {data || to ? null : <option value="">choose a model</option>}
            {models.map((name) => (
              <option key={name} value={name}>{name}</option>
            ))}
          </select>
        </label>
      </div>
      {data ? (
        <>
          <Estimate quote={data} />
          <p class="muted small">The session uses this model from its next call.</p>
        </>
      ) : null}
      {estimate.error ? <p class="notice failed" role="alert">{estimate.error.message}</p> : null}
      {estimate.error && models.length === 0 ? <p class="muted small">Add models to <a href={hrefTo(["policies"])}>the policy</a>, cheapest first: <code>models = ["small", "large"]</code></p> : null}
      {!data && !estimate.error && !denied ? <p class="muted" role="status">Loading the estimate</p> : null}
      <footer>
        {denied ? <span class="disabled-reason">{denied}</span> : exceedsBudget ? <span class="error-text">Exceeds the remaining budget.</span> : null}
        <button class="button" onClick={close}>Cancel</button>
        <button class="button primary" disabled={busy || !data?.token || estimate.loading} onClick={confirm}>
          {data?.costEstimate != null ? `Escalate for about ${dollars(data.costEstimate)}` : "Escalate"}
        </button>
      </footer>
    </Dialog>
  );
}
