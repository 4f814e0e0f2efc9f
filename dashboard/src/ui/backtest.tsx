// "What would this have done last week?": the draft over what really happened.
import { useState } from "preact/hooks";
import { mayNot, post } from "../api";
import { count, dollars, duration, plural } from "../format";
import { now } from "../live/clock";
import { link } from "../route";
import type { BacktestOut } from "../wire";
import { Select } from "./parts";

const PERIODS = [
  { value: "1", label: "last 24 hours" },
  { value: "7", label: "last 7 days" },
  { value: "30", label: "last 30 days" },
];

export function Backtest({ toml, project, ready }: { toml: string; project: string; ready: boolean }) {
  const [days, setDays] = useState("7");
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState<string | null>(null);
  const [found, setFound] = useState<{ toml: string; out: BacktestOut } | null>(null);
  const refused = mayNot("act");
  const ask = async () => {
    setBusy(true);
    setWrong(null);
    try {
      const body = { policy: { toml }, project: project || null, since: Math.floor(now.peek() - Number(days) * 86_400) };
      setFound({ toml, out: await post<BacktestOut>("backtest", body) });
    } catch (error) {
      setWrong(error instanceof Error ? error.message : String(error));
    }
    setBusy(false);
  };
  return (
    <section class="card">
      <header>
        <h2>Backtest</h2>
      </header>
      <div class="inside backtest">
        <div class="actions">
          <Select label="Period" value={days} choices={PERIODS} pick={setDays} />
          <button class="button" disabled={busy || !ready || refused !== null} onClick={ask}>{busy ? "Running backtest" : "Run backtest"}</button>
          {refused ? <span class="why-not">{refused}</span> : null}
        </div>
        {wrong ? <p class="wrong" role="alert">{wrong}</p> : null}
        {found ? <Result out={found.out} old={found.toml !== toml} /> : <p class="muted small">Replays recorded incidents with this draft. No model is called, and nothing changes.</p>}
      </div>
    </section>
  );
}

function Result({ out, old }: { out: BacktestOut; old: boolean }) {
  const saved = (value: number, text: string) => (value === 0 ? null : `${text} ${value > 0 ? "fewer" : "more"}`);
  const sums = [
    saved(out.attemptsSaved, plural(Math.abs(out.attemptsSaved), "attempt")),
    saved(out.secondsSaved, duration(Math.abs(out.secondsSaved))),
    saved(out.dollarsSaved, dollars(Math.abs(out.dollarsSaved))),
  ].filter(Boolean);
  return (
    <div class="backtest" role="status">
      {old ? <p class="notice retrying">The draft has changed since this backtest. Run it again.</p> : null}
      <dl class="sums">
        <div><dt>Incidents replayed</dt><dd>{count(out.incidents)}</dd></div>
        <div><dt>Unchanged</dt><dd>{count(out.same)}</dd></div>
        <div><dt>Ended earlier</dt><dd>{count(out.fewer)}</dd></div>
        <div><dt>Different</dt><dd>{count(out.otherwise)}</dd></div>
        <div><dt>Unknown</dt><dd>{count(out.unknown)}</dd></div>
        {out.goodLost > 0 ? <div class="failed-text"><dt>Successes lost</dt><dd>{count(out.goodLost)}</dd></div> : null}
      </dl>
      {sums.length > 0 ? <p class="small">Total: <b>{sums.join(", ")}</b>.</p> : null}
      {out.differing.length > 0 ? (
        <details>
          <summary>{plural(out.differing.length, "incident")} with a different result</summary>
          <ul class="list">
            {out.differing.slice(0, 50).map((one) => (
              <li key={one.incident} class="small"><a href={link(["incidents", one.incident])}>{one.incident}</a> <span class="muted">{one.words}</span></li>
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
