// Backtest: replays recorded incidents with the draft policy.
import { useState } from "preact/hooks";
import { deniedReason, post } from "../api";
import { count, dollars, duration, plural } from "../format";
import { now } from "../live/clock";
import { hrefTo } from "../route";
import type { BacktestOut } from "../wire";
import { Select } from "./parts";

const PERIODS = [
  { value: "1", label: "last 24 hours" },
  { value: "7", label: "last 7 days" },
  { value: "30", label: "last 30 days" },
];

export function Backtest({ toml, project, valid }: { toml: string; project: string; valid: boolean }) {
  const [days, setDays] = useState("7");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const [result, setResult] = useState<{ toml: string; out: BacktestOut } | null>(null);
  const denied = deniedReason("act");
  const run = async () => {
    setBusy(true);
    setError(null);
    try {
      const body = { policy: { toml }, project: project || null, since: Math.floor(now.peek() - Number(days) * 86_400) };
      setResult({ toml, out: await post<BacktestOut>("backtest", body) });
    } catch (error) {
      setError(error instanceof Error ? error.message : String(error));
    }
    setBusy(false);
  };
  return (
    <section class="card">
      <header>
        <h2>Backtest</h2>
      </header>
      <div class="card-body backtest">
        <div class="actions">
          <Select label="Period" value={days} choices={PERIODS} pick={setDays} />
          <button class="button" disabled={busy || !valid || denied !== null} onClick={run}>{busy ? "Running backtest" : "Run backtest"}</button>
          {denied ? <span class="disabled-reason">{denied}</span> : null}
        </div>
        {error ? <p class="error-text" role="alert">{error}</p> : null}
        {result ? <Result out={result.out} outdated={result.toml !== toml} /> : <p class="muted small">Replays recorded incidents with this draft. No model is called, and nothing changes.</p>}
      </div>
    </section>
  );
}

function Result({ out, outdated }: { out: BacktestOut; outdated: boolean }) {
  const describeDifference = (value: number, text: string) => (value === 0 ? null : `${text} ${value > 0 ? "fewer" : "more"}`);
  const differences = [
    describeDifference(out.attemptsSaved, plural(Math.abs(out.attemptsSaved), "attempt")),
    describeDifference(out.secondsSaved, duration(Math.abs(out.secondsSaved))),
    describeDifference(out.dollarsSaved, dollars(Math.abs(out.dollarsSaved))),
  ].filter(Boolean);
  return (
    <div class="backtest" role="status">
      {outdated ? <p class="notice retrying">The draft has changed since this backtest. Run it again.</p> : null}
      <dl class="summary">
        <div><dt>Incidents replayed</dt><dd>{count(out.incidents)}</dd></div>
        <div><dt>Unchanged</dt><dd>{count(out.same)}</dd></div>
        <div><dt>Ended earlier</dt><dd>{count(out.fewer)}</dd></div>
        <div><dt>Different</dt><dd>{count(out.otherwise)}</dd></div>
        <div><dt>Unknown</dt><dd>{count(out.unknown)}</dd></div>
        {out.goodLost > 0 ? <div class="failed-text"><dt>Successes lost</dt><dd>{count(out.goodLost)}</dd></div> : null}
      </dl>
      {differences.length > 0 ? <p class="small">Total: <b>{differences.join(", ")}</b>.</p> : null}
      {out.differing.length > 0 ? (
        <details>
          <summary>{plural(out.differing.length, "incident")} with a different result</summary>
          <ul class="list">
            {out.differing.slice(0, 50).map((one) => (
              <li key={one.incident} class="small"><a href={hrefTo(["incidents", one.incident])}>{one.incident}</a> <span class="muted">{one.words}</span></li>
            ))}
          </ul>
        </details>
      ) : null}
      {out.cannotKnow.length > 0 ? (
        <details>
          <summary>Limits of the backtest</summary>
          <ul class="list">{out.cannotKnow.map((text) => <li key={text} class="small muted">{text}</li>)}</ul>
        </details>
      ) : null}
    </div>
  );
}
