import { useState } from "preact/hooks";
import { get } from "../api";
import { count, dollars, duration, fromIso, fullDateTime, nextAttempt, percent, plural, time, humanize } from "../format";
import { useResource } from "../live/use_resource";
import { hrefTo } from "../route";
import { LoadError, Loading } from "../ui/empty";
import { EscalateDialog } from "../ui/escalate";
import { Icon } from "../ui/icons";
import { useKeys } from "../ui/shortcuts";
import { Ago, Badge, Countdown, Facts, Model, Since } from "../ui/parts";
import { Until, WakeButton, wakePath } from "../ui/parked";
import { RetryDialog } from "../ui/retry";
import { StopButton } from "../ui/stop";
import type { AttemptOut, ModelChange as ModelChangeData, RootCauseOut, SessionDetail } from "../wire";

const openRecovery = (data: SessionDetail) => data.recoveries.find((one) => one.endedAt === null);
const ACTIVE_STATUSES = new Set(["running", "retrying", "parked", "waiting", "open"]);

export default function Session({ path }: { path: readonly string[] }) {
  const id = path[0] ?? "";
  const session = useResource(
    id,
    (signal) => get<SessionDetail>(`sessions/${encodeURIComponent(id)}`, {}, signal),
    ({ name, data }) => name === "act" || (data as { session?: string }).session === id,
  );
  const [dialog, setDialog] = useState<"retry" | "escalate" | null>(null);
  useKeys({ r: () => session.data && setDialog("retry"), e: () => session.data && setDialog("escalate") });

  const data = session.data;
  return (
    <section class="page">
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href={hrefTo(["sessions"])}>Sessions</a> <span aria-hidden="true">/</span> <span class="truncate">{id}</span>
      </nav>
      {data ? (
        <>
          <Header data={data} open={setDialog} />
          <div class="columns">
            <Attempts data={data} />
            <Sidebar data={data} />
          </div>
        </>
      ) : session.error ? (
        <LoadError error={session.error} retry={session.reload} />
      ) : (
        <Loading rows={7} />
      )}
      {dialog === "retry" ? <RetryDialog session={id} close={() => setDialog(null)} /> : null}
      {dialog === "escalate" ? <EscalateDialog session={id} close={() => setDialog(null)} /> : null}
    </section>
  );
}

function Header({ data, open }: { data: SessionDetail; open: (what: "retry" | "escalate") => void }) {
  const live = openRecovery(data);
  return (
    <>
      <div class="page-head">
        <div class="title">
          <h1 class="truncate">{data.id}</h1>
          <Badge status={data.status} />
        </div>
        <div class="actions">
          <button class="button" onClick={() => open("retry")} title="r">
            <Icon name="retry" size={15} /> Retry with error context
          </button>
          <button class="button" onClick={() => open("escalate")} title="e">
            <Icon name="up" size={15} /> Escalate
          </button>
          <StopButton incident={live?.id ?? ""} disabledReason={live ? null : "no recovery is running"} />
        </div>
      </div>
      <Facts
        items={[
          ["Project", data.project ? <a href={hrefTo(["sessions"], { project: data.project })}>{data.project}</a> : "none"],
          ["Agent", data.agent || "unnamed"],
          ["Model", <SessionModel data={data} />],
          ["Attempts", <><a href={hrefTo(["incidents"], { session: data.id, all: "1" })}>{count(data.attempts)}</a>, <a href={hrefTo(["incidents"], { session: data.id })}>{count(data.failures)} failed</a></>],
          ["Cost", <a href={hrefTo(["incidents"], { session: data.id, all: "1" })}>{dollars(data.dollars)}</a>],
          ...(data.cacheShare === null ? [] : [["Cache", `${percent(data.cacheShare)} of input`] as [string, string]]),
          ["Started", <Ago at={data.beganAt} />],
          ["Last activity", <Ago at={data.touchedAt} />],
        ]}
      />
    </>
  );
}

/** The model of the session, and the one that a person chose for its next call. */
function SessionModel({ data }: { data: SessionDetail }) {
  const last = data.modelChanges.at(-1);
  const isPending = last?.reason === "manual" && last.toModel !== data.model && fromIso(last.timestamp) > data.touchedAt;
  return (
    <>
      <Model model={data.model} former={data.formerModel} />
      {isPending ? <span class="next-model small">{last.toModel} from the next call</span> : null}
    </>
  );
}

type Entry = { at: number; attempt: AttemptOut } | { at: number; change: ModelChangeData };

interface Recovery {
  incident: string;
  entries: Entry[];
}

const MAX_RECOVERIES = 6;
const MAX_FOLLOW_UPS = 5;

/** Returns attempts and model changes in chronological order, grouped by recovery. */
function groupByRecovery(data: SessionDetail): Recovery[] {
  const attempts: Entry[] = data.attemptsMade.map((attempt) => ({ at: fromIso(attempt.timestamp), attempt }));
  const changes: Entry[] = data.modelChanges.map((change) => ({ at: fromIso(change.timestamp), change }));
  const recoveries: Recovery[] = [];
  for (const entry of [...attempts, ...changes].sort((one, other) => one.at - other.at)) {
    const incident = "attempt" in entry ? entry.attempt.incident : (recoveries.at(-1)?.incident ?? "");
    if (recoveries.at(-1)?.incident !== incident) recoveries.push({ incident, entries: [] });
    recoveries.at(-1)?.entries.push(entry);
  }
  return recoveries;
}

function Attempts({ data }: { data: SessionDetail }) {
  const [all, setAll] = useState(false);
  const recoveries = groupByRecovery(data);
  const shown = all ? recoveries : recoveries.slice(-MAX_RECOVERIES);
  const incidents = new Map(data.recoveries.map((one) => [one.id, one]));
  return (
    <section aria-label="Attempts">
      {shown.length < recoveries.length ? (
        <p class="part"><button class="button tiny" onClick={() => setAll(true)}>Show {plural(recoveries.length - shown.length, "earlier recovery", "earlier recoveries")}</button></p>
      ) : null}
      {shown.map((recovery, n) => {
        const incident = incidents.get(recovery.incident);
        return (
          <div key={recovery.incident}>
            {recovery.incident ? (
              <p class="part">
                <a href={hrefTo(["incidents", recovery.incident])}>{incident?.ladder ?? "recovery"} · {recovery.incident}</a>
                {incident ? <Badge status={incident.status} parkedUntil={incident.parkedUntil} /> : null}
              </p>
            ) : null}
            <ol class="turns">
              {recovery.entries.map((entry, m) =>
                "attempt" in entry ? <Attempt key={`a${m}`} attempt={entry.attempt} /> : <ModelChange key={`c${m}`} change={entry.change} />,
              )}
              {n === shown.length - 1 ? <Pending data={data} /> : null}
            </ol>
          </div>
        );
      })}
      {recoveries.length === 0 ? (ACTIVE_STATUSES.has(data.status) ? <ol class="turns"><Pending data={data} /></ol> : <p class="muted">No attempts recorded.</p>) : null}
    </section>
  );
}

/** The next attempt or pending question, so that a waiting session does not look stuck. */
function Pending({ data }: { data: SessionDetail }) {
  const live = openRecovery(data);
  if (data.retry) {
    return (
      <li class="turn pending retrying">
        <span class="turn-icon" aria-hidden="true"><Icon name="retry" size={14} /></span>
        <div class="turn-body">
          <p>
            {nextAttempt(data.retry).replace(/^r/, "R").replace(/^w/, "W")} starts <Countdown until={data.retry.until} />
          </p>
        </div>
      </li>
    );
  }
  if (data.parkedUntil !== null) {
    return (
      <li class="turn pending parked">
        <span class="turn-icon" aria-hidden="true"><Icon name="pause" size={13} /></span>
        <div class="turn-body">
          <p>Parked <Until at={data.parkedUntil} /></p>
          {live ? <div class="actions"><WakeButton path={wakePath(live.id)} tiny /></div> : null}
        </div>
      </li>
    );
  }
  if (data.status === "waiting") {
    return (
      <li class="turn pending waiting">
        <span class="turn-icon" aria-hidden="true">?</span>
        <div class="turn-body">
          <p>Waiting for your answer. {live ? <a href={hrefTo(["incidents", live.id])}>Answer</a> : null}</p>
        </div>
      </li>
    );
  }
  if (!ACTIVE_STATUSES.has(data.status)) return null;
  return (
    <li class="turn pending running">
      <span class="turn-icon pulsing" aria-hidden="true" />
      <div class="turn-body">
        <p>Attempt running for <Since at={data.touchedAt} /></p>
      </div>
    </li>
  );
}

function Attempt({ attempt }: { attempt: AttemptOut }) {
  const succeeded = attempt.succeeded;
  return (
    <li class={`turn ${succeeded ? "recovered" : "failed"}`}>
      <span class="turn-icon" aria-hidden="true">{succeeded ? <Icon name="check" size={13} /> : attempt.attemptNumber}</span>
      <div class="turn-body">
        <p class="turn-head">
          <b>{succeeded ? "Succeeded" : humanize(attempt.kind || attempt.error || "failed")}</b>
          {attempt.rung ? <a class="tag" href={hrefTo(["incidents", attempt.incident])}>{attempt.rung}</a> : null}
          <span class="quiet small turn-time" title={fullDateTime(fromIso(attempt.timestamp))}>{time(fromIso(attempt.timestamp))}</span>
        </p>
        {succeeded || !attempt.errorMessage ? null : <pre class="output">{attempt.errorMessage}</pre>}
        <p class="quiet small dot-separated">
          <span>attempt {attempt.attemptNumber}</span>
          {attempt.model ? <span>{attempt.model}</span> : null}
          <span>{duration(attempt.seconds)}</span>
          <span>{dollars(attempt.dollars)}</span>
          {attempt.delayMs > 0 ? <span>then a wait of {duration(attempt.delayMs / 1000)}</span> : null}
          {attempt.prompt ? <span>recovery prompt: {attempt.prompt}</span> : null}
          {attempt.rule ? <span>rule: <code>{attempt.rule}</code></span> : null}
        </p>
      </div>
    </li>
  );
}

function ModelChange({ change }: { change: ModelChangeData }) {
  return (
    <li class="turn change">
      <span class="turn-icon" aria-hidden="true">
        <Icon name="up" size={13} />
      </span>
      <div class="turn-body">
        <p class="turn-head">
          <b>
            {change.fromModel || "unknown"} → {change.toModel}
          </b>
          <span class="tag">{humanize(change.reason)}</span>
          <span class="quiet small turn-time" title={fullDateTime(fromIso(change.timestamp))}>{time(fromIso(change.timestamp))}</span>
        </p>
        <p class="quiet small dot-separated">
          {change.costEstimate !== null ? <span>estimated {dollars(change.costEstimate)}</span> : null}
          {change.cost !== null ? <span>cost {dollars(change.cost)}</span> : null}
          {change.cause ? <span>{humanize(change.cause)}</span> : null}
          {change.by ? <span>by {change.by}</span> : null}
        </p>
      </div>
    </li>
  );
}

/** Which step first went wrong, and which later failures follow from it. */
function RootCauseCard({ cause }: { cause: RootCauseOut }) {
  return (
    <section class="card" aria-label="Root cause">
      <header><h2>Root cause</h2></header>
      <div class="card-body">
        {cause.kind ? (
          <p>
            <span class="kind">{humanize(cause.kind)}</span>
            <span class="quiet small"> explains {percent(cause.confidence)} of the failures</span>
          </p>
        ) : null}
        <p class={cause.step === null ? "muted small wrap" : "small wrap"}>{cause.sentence}</p>
        {cause.chain.length > 0 ? (
          <ul class="list">
            {cause.chain.slice(0, MAX_FOLLOW_UPS).map((one) => (
              <li key={one.step} class="quiet small wrap"><b>{one.step}</b> {one.link}</li>
            ))}
            {cause.chain.length > MAX_FOLLOW_UPS ? <li class="quiet small">and {cause.chain.length - MAX_FOLLOW_UPS} more</li> : null}
          </ul>
        ) : null}
        {cause.where ? <p class="small"><a href={hrefTo(["incidents", cause.where])}>Open its incident</a></p> : null}
      </div>
    </section>
  );
}

function Sidebar({ data }: { data: SessionDetail }) {
  const max = Math.max(...data.cost.map((one) => one.dollars), 1e-9);
  return (
    <aside class="sidebar">
      {data.rootCause ? <RootCauseCard cause={data.rootCause} /> : null}
      {data.lastFailure ? (
        <section class="card">
          <header><h2>Last failure</h2></header>
          <div class="card-body">
            <p><span class="kind">{humanize(data.lastFailure.kind)}</span></p>
            <p class="muted small wrap">{data.lastFailure.message}</p>
            <p class="quiet small">Classified by rule <code>{data.lastFailure.rule || "none"}</code></p>
          </div>
        </section>
      ) : null}
      <section class="card">
        <header><h2>Recoveries</h2></header>
        <ul class="card-body list">
          {data.recoveries.map((one) => (
            <li key={one.id}>
              <a class="list-link" href={hrefTo(["incidents", one.id])}>
                <span class="list-main">
                  <b>{one.kind ? humanize(one.kind) : "no failure"}</b>
                  <span class="quiet small">{one.ladder}{one.rung ? ` · ${one.rung}` : ""} · {plural(one.attempts, "attempt")} · <Ago at={one.openedAt} /></span>
                </span>
                <Badge status={one.status} parkedUntil={one.parkedUntil} />
              </a>
            </li>
          ))}
          {data.recoveries.length === 0 ? <li class="quiet small">none</li> : null}
        </ul>
      </section>
      {data.cost.length > 0 ? (
        <section class="card">
          <header><h2>Cost by model</h2></header>
          <ul class="card-body list">
            {data.cost.map((one) => (
              <li key={one.model} class="cost-line">
                <span class="truncate">{one.model || "unknown"}</span>
                <span class="quiet small">{plural(one.attempts, "attempt")}</span>
                <b>{dollars(one.dollars)}</b>
                <meter value={one.dollars} max={max} aria-label={`${one.model}: ${dollars(one.dollars)}`} />
              </li>
            ))}
          </ul>
        </section>
      ) : null}
    </aside>
  );
}
