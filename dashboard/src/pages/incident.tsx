import { useState } from "preact/hooks";
import { get } from "../api";
import { count, dollars, duration, fullDateTime, plural, time, humanize, nextAttempt } from "../format";
import { useResource } from "../live/use_resource";
import { hrefTo } from "../route";
import { AskForm } from "../ui/ask";
import { Diff } from "../ui/diff";
import { LoadError, Loading } from "../ui/empty";
import { EscalateDialog } from "../ui/escalate";
import { Icon } from "../ui/icons";
import { Ago, Badge, Countdown, Facts, Model, Since } from "../ui/parts";
import { Until, WakeButton, wakePath } from "../ui/parked";
import { StopButton } from "../ui/stop";
import type { FieldChange, IncidentDetail, RungOut, TimelineEntry as TimelineEntryData } from "../wire";

const MAX_PIPS = 8;

export default function Incident({ path }: { path: readonly string[] }) {
  const id = path[0] ?? "";
  const incident = useResource(
    id,
    (signal) => get<IncidentDetail>(`incidents/${encodeURIComponent(id)}`, {}, signal),
    ({ name, data }) => name === "act" || (data as { incident?: string }).incident === id,
  );
  const data = incident.data;
  return (
    <section class="page">
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href={hrefTo(["incidents"])}>Incidents</a> <span aria-hidden="true">/</span>
        {data?.session ? <a href={hrefTo(["sessions", data.session])}>{data.session}</a> : null}
        {data?.session ? <span aria-hidden="true">/</span> : null}
        <span class="truncate">{id}</span>
      </nav>
      {data ? <Details data={data} reload={incident.reload} /> : incident.error ? <LoadError error={incident.error} retry={incident.reload} /> : <Loading rows={7} />}
    </section>
  );
}

function Details({ data, reload }: { data: IncidentDetail; reload: () => void }) {
  const live = data.endedAt === null;
  return (
    <>
      <div class="page-head">
        <div class="title">
          <h1 class="capital">{data.kind ? humanize(data.kind) : "No failure"}</h1>
          <Badge status={data.status} parkedUntil={data.parkedUntil} />
        </div>
        <div class="actions"><StopButton incident={data.id} disabledReason={live ? null : "already ended"} /></div>
      </div>
      {data.parkedUntil !== null ? <ParkedBanner data={data} until={data.parkedUntil} /> : data.message ? <p class="muted wrap">{data.message}</p> : null}
      <Facts
        items={[
          ["Project", data.project ? <a href={hrefTo(["incidents"], { project: data.project })}>{data.project}</a> : "none"],
          ["Agent", data.agent || "unnamed"],
          ["Model", <Model model={data.model} former={data.firstModel === data.model ? "" : data.firstModel} />],
          ["Policy", data.policy],
          ["Attempts", `${count(data.attempts)}, ${count(data.failures)} failed`],
          ["Cost", dollars(data.dollars)],
          [live ? "Running for" : "Duration", live ? <Since at={data.openedAt} /> : duration((data.endedAt ?? 0) - data.openedAt)],
          ["Started", <Ago at={data.openedAt} />],
        ]}
      />
      {data.ask ? (
        <section class="card ask" aria-label="Question">
          <div class="card-body"><AskForm ask={data.ask} onAnswered={reload} /></div>
        </section>
      ) : null}
      <div class="columns">
        <div class="sidebar">
          <Ladder data={data} live={live} />
          <Timeline data={data} />
        </div>
        <div class="sidebar">
          <Outcome data={data} live={live} />
          {data.parent ? <p class="small">Part of <a href={hrefTo(["incidents", data.parent])}>{data.parent}</a></p> : null}
          {data.fingerprint ? (
            <p class="small"><a href={hrefTo(["incidents"], { fingerprint: data.fingerprint })}>Other incidents with the same failure</a></p>
          ) : null}
        </div>
      </div>
    </>
  );
}

/** Until when and why a recovery is parked, and how to continue earlier. */
function ParkedBanner({ data, until }: { data: IncidentDetail; until: number }) {
  const [choosing, setChoosing] = useState(false);
  const lastFailure = data.timeline.findLast((entry) => entry.name === "AttemptFailed")?.text ?? data.message;
  const cause = lastFailure.replace(/ \([^()]*\)$/, "").replace(/^\w+(?=: )/, humanize); // without the duration of the attempt
  return (
    <section class="notice parked parked-banner" aria-label="Parked">
      <div>
        <p><b>Parked <Until at={until} /></b></p>
        {cause ? <p class="wrap small">because of {cause}</p> : null}
      </div>
      <div class="actions">
        <WakeButton path={wakePath(data.id)} />
        {data.session ? <button class="button" onClick={() => setChoosing(true)}><Icon name="up" size={15} /> Use another model</button> : null}
      </div>
      {choosing ? <EscalateDialog session={data.session} close={() => setChoosing(false)} /> : null}
    </section>
  );
}

/** The ladder with its first rung at the bottom; used rungs are highlighted. */
function Ladder({ data, live }: { data: IncidentDetail; live: boolean }) {
  const highest = data.rungs.findLastIndex((rung) => rung.used > 0); // unused rungs below it were skipped
  const succeeded = data.status === "recovered" || data.status === "succeeded";
  return (
    <section class="card">
      <header>
        <h2>Ladder: {data.ladder}</h2>
        {data.retry ? (
          <span class="next-attempt">
            {nextAttempt(data.retry)} <Countdown until={data.retry.until} />
          </span>
        ) : null}
      </header>
      <ol class="ladder">
        {data.rungs.map((rung, n) => (
          <RungRow key={rung.name} rung={n < highest && rung.state === "ahead" ? { ...rung, state: "skipped" } : rung} mark={live ? (rung.state === "here" ? "live" : "") : rung.name === data.rung && rung.used > 0 ? (succeeded ? "here ended-success" : "here ended-failure") : ""} />
        ))}
      </ol>
    </section>
  );
}

const STATE_LABELS = { ahead: "not used", skipped: "skipped", climbed: "used", here: "current" } as const;

function RungRow({ rung, mark }: { rung: RungOut; mark: string }) {
  const tries = Math.max(rung.tries ?? 0, rung.used);
  return (
    <li class={`rung ${rung.state} ${mark}`}>
      <span class="rung-drawing" aria-hidden="true"><span class="rung-bar" /></span>
      <div class="rung-text">
        <b>{rung.name}</b> <span class="visually-hidden">{STATE_LABELS[rung.state]}</span>
        <p>{rung.about}</p>
        {rung.skipped ? <p class="rung-skipped">Skipped: {rung.skipped}</p> : null}
      </div>
      <div class="rung-figures">
        <span class="pips">
          {tries <= MAX_PIPS ? Array.from({ length: tries }, (_, n) => <i key={n} class={n < rung.used ? "used" : ""} aria-hidden="true" />) : null}
          <span>{triesText(rung)}</span>
        </span>
        {rung.used > 0 || rung.seconds !== null ? (
          <span>
            {rung.used > 0 ? duration(rung.took) : "up to"}
            {rung.seconds !== null ? ` ${rung.used > 0 ? "of " : ""}${duration(rung.seconds)}` : ""}
          </span>
        ) : null}
        {rung.dollars ? <span>{dollars(rung.dollars)}</span> : null}
      </div>
    </li>
  );
}

/** Returns the tries of a rung. Retry restarts after each climb, so its used tries can exceed its limit. */
function triesText({ used, tries }: RungOut): string {
  if (tries === null) return plural(used, "try", "tries");
  return used > tries ? `${plural(used, "try", "tries")}, at most ${tries} in a row` : `${used} of ${plural(tries, "try", "tries")}`;
}

function Timeline({ data }: { data: IncidentDetail }) {
  return (
    <section class="card">
      <header><h2>Timeline</h2></header>
      <ol class="card-body timeline">
        {data.timeline.map((moment) => (
          <TimelineEntry key={moment.n} moment={moment} changes={data.changes.filter((change) => change.n === moment.n)} />
        ))}
      </ol>
    </section>
  );
}

const MARKS: Record<string, { sign: string; tone: string }> = {
  bad: { sign: "✗", tone: "failed" }, good: { sign: "✓", tone: "recovered" }, next: { sign: "↻", tone: "retrying" },
  climb: { sign: "↑", tone: "retrying" }, end: { sign: "■", tone: "succeeded" },
};

function TimelineEntry({ moment, changes }: { moment: TimelineEntryData; changes: FieldChange[] }) {
  return (
    <li>
      <time class="quiet small" title={fullDateTime(moment.at)}>{time(moment.at)}</time>
      <span class={`timeline-mark ${MARKS[moment.mark]?.tone ?? ""}`} aria-hidden="true">{MARKS[moment.mark]?.sign ?? "·"}</span>
      <div>
        <p>
          <b>{moment.subject}</b> <span class="muted wrap">{moment.text}</span>
        </p>
        {moment.more.map((line, n) => (
          <p key={n} class="quiet small wrap">{line}</p>
        ))}
        {changes.length > 0 ? (
          <details>
            <summary>Request changes: {changes.map((change) => change.field).join(", ")}</summary>
            {changes.map((change) => (
              <div key={change.field}>
                <p class="quiet small">{change.field}</p>
                <Diff before={change.before} after={change.after} label={`Changes in ${change.field}`} />
              </div>
            ))}
          </details>
        ) : null}
      </div>
    </li>
  );
}

const OUTCOME_FIELDS: [string, string][] = [
  ["status", "Status"], ["recommendation", "Recommendation"], ["failureReason", "Reason"], ["failedAt", "Stopped at"],
  ["completedSteps", "Completed steps"], ["escalationPath", "Levels used"], ["errorType", "Last failure"], ["model", "Model"],
];

function Outcome({ data, live }: { data: IncidentDetail; live: boolean }) {
  const [raw, setRaw] = useState(false);
  const present = OUTCOME_FIELDS.filter(([name]) => {
    const value = data.outcome?.[name];
    return value !== null && value !== undefined && value !== "" && !(Array.isArray(value) && value.length === 0);
  });
  return (
    <section class="card">
      <header>
        <h2>Outcome</h2>
        {present.length > 0 ? (
          <button class="button plain tiny" aria-pressed={raw} onClick={() => setRaw(!raw)}>JSON</button>
        ) : null}
      </header>
      <div class="card-body">
        {raw ? (
          <pre class="output" tabIndex={0}>{JSON.stringify(data.outcome, null, 2)}</pre>
        ) : present.length > 0 ? (
          <dl class="outcome-fields">
            {present.map(([name, label]) => (
              <>
                <dt>{label}</dt>
                <dd>{name === "status" ? <Badge status={String(data.outcome[name])} /> : valueText(data.outcome[name])}</dd>
              </>
            ))}
          </dl>
        ) : (
          <p class="muted small">{live ? "In progress. The outcome will list the completed steps, where the recovery stopped and what to do next." : "No outcome recorded."}</p>
        )}
        {data.result ? (
          <details>
            <summary>Result</summary>
            <pre class="output" tabIndex={0}>{data.result}</pre>
          </details>
        ) : null}
      </div>
    </section>
  );
}

function valueText(value: unknown): string {
  return Array.isArray(value) ? value.join(", ") : String(value);
}
