import { useState } from "preact/hooks";
import { get, mayNot, post } from "../api";
import { count, dollars, duration, exactly, plural, time, words } from "../format";
import { useResource } from "../live/resource";
import { link } from "../route";
import { Ask } from "../ui/ask";
import { Diff } from "../ui/diff";
import { Failed, Loading } from "../ui/empty";
import { Icon } from "../ui/icons";
import { Ago, Badge, Countdown, Facts, Model, Since } from "../ui/parts";
import { complain, say } from "../ui/toast";
import type { Done, FieldChange, IncidentDetail, Moment, RungOut } from "../wire";

const MOST_PIPS = 8;

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
        <a href={link(["incidents"])}>Incidents</a> <span aria-hidden="true">/</span>
        {data?.session ? <a href={link(["sessions", data.session])}>{data.session}</a> : null}
        {data?.session ? <span aria-hidden="true">/</span> : null}
        <span class="cut">{id}</span>
      </nav>
      {data ? <Whole data={data} again={incident.again} /> : incident.error ? <Failed error={incident.error} again={incident.again} /> : <Loading rows={7} />}
    </section>
  );
}

function Whole({ data, again }: { data: IncidentDetail; again: () => void }) {
  const live = data.endedAt === null;
  return (
    <>
      <div class="page-head">
        <div class="title">
          <h1 class="capital">{data.kind ? words(data.kind) : "No failure"}</h1>
          <Badge status={data.status} />
        </div>
        <Cancel data={data} />
      </div>
      {data.message ? <p class="muted wrap">{data.message}</p> : null}
      <Facts
        items={[
          ["Project", data.project || "none"],
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
          <div class="inside"><Ask ask={data.ask} answered={again} /></div>
        </section>
      ) : null}
      <div class="columns">
        <div class="beside">
          <Ladder data={data} live={live} />
          <Story data={data} />
        </div>
        <div class="beside">
          <Outcome data={data} live={live} />
          {data.parent ? <p class="small">Part of <a href={link(["incidents", data.parent])}>{data.parent}</a></p> : null}
          {data.fingerprint ? (
            <p class="small"><a href={link(["incidents"], { fingerprint: data.fingerprint })}>Other incidents with the same failure</a></p>
          ) : null}
        </div>
      </div>
    </>
  );
}

function Cancel({ data }: { data: IncidentDetail }) {
  const whyNot = mayNot("act") ?? (data.endedAt === null ? null : "already ended");
  const stop = async () => {
    if (!confirm("Stop this recovery? Completed work is kept.")) return;
    try {
      const done = await post<Done>(`incidents/${encodeURIComponent(data.id)}/cancel`);
      say(done.note || "The recovery stops at its next step");
    } catch (error) {
      complain(error);
    }
  };
  return (
    <div class="actions">
      <button class="button danger" disabled={whyNot !== null} onClick={stop}>
        <Icon name="stop" size={14} /> Stop
      </button>
      {whyNot ? <span class="why-not">{whyNot}</span> : null}
    </div>
  );
}

/** The rungs, the lowest at the bottom, lit as they were climbed. */
function Ladder({ data, live }: { data: IncidentDetail; live: boolean }) {
  const highest = data.rungs.findLastIndex((rung) => rung.used > 0); // what lies below it unused is not ahead any more
  const well = data.status === "recovered" || data.status === "succeeded";
  return (
    <section class="card">
      <header>
        <h2>Ladder: {data.ladder}</h2>
        {data.retry ? (
          <span class="next-try">
            attempt {data.retry.attempt}
            {data.retry.of ? ` of ${data.retry.of}` : ""} <Countdown until={data.retry.until} />
          </span>
        ) : null}
      </header>
      <ol class="ladder">
        {data.rungs.map((rung, n) => (
          <Step key={rung.name} rung={n < highest && rung.state === "ahead" ? { ...rung, state: "skipped" } : rung} mark={live ? (rung.state === "here" ? "live" : "") : rung.name === data.rung && rung.used > 0 ? (well ? "here ended-well" : "here ended-badly") : ""} />
        ))}
      </ol>
    </section>
  );
}

const STATE = { ahead: "not used", skipped: "skipped", climbed: "used", here: "current" } as const;

function Step({ rung, mark }: { rung: RungOut; mark: string }) {
  const tries = Math.max(rung.tries ?? 0, rung.used);
  return (
    <li class={`rung ${rung.state} ${mark}`}>
      <span class="rung-drawing" aria-hidden="true"><span class="rung-bar" /></span>
      <div class="rung-text">
        <b>{rung.name}</b> <span class="unseen">{STATE[rung.state]}</span>
        <p>{rung.about}</p>
      </div>
      <div class="rung-figures">
        <span class="pips">
          {tries <= MOST_PIPS ? Array.from({ length: tries }, (_, n) => <i key={n} class={n < rung.used ? "used" : ""} aria-hidden="true" />) : null}
          <span>{tried(rung)}</span>
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

/** A retry rung starts afresh after each climb: it may have been tried more often than once through. */
function tried({ used, tries }: RungOut): string {
  if (tries === null) return plural(used, "try", "tries");
  return used > tries ? `${plural(used, "try", "tries")}, at most ${tries} in a row` : `${used} of ${plural(tries, "try", "tries")}`;
}

function Story({ data }: { data: IncidentDetail }) {
  return (
    <section class="card">
      <header><h2>Timeline</h2></header>
      <ol class="inside moments">
        {data.timeline.map((moment) => (
          <Told key={moment.n} moment={moment} changes={data.changes.filter((change) => change.n === moment.n)} />
        ))}
      </ol>
    </section>
  );
}

const MARKS: Record<string, { sign: string; tone: string }> = {
  bad: { sign: "✗", tone: "failed" }, good: { sign: "✓", tone: "recovered" }, next: { sign: "↻", tone: "retrying" },
  climb: { sign: "↑", tone: "retrying" }, end: { sign: "■", tone: "succeeded" },
};

function Told({ moment, changes }: { moment: Moment; changes: FieldChange[] }) {
  return (
    <li>
      <time class="quiet small" title={exactly(moment.at)}>{time(moment.at)}</time>
      <span class={`moment-mark ${MARKS[moment.mark]?.tone ?? ""}`} aria-hidden="true">{MARKS[moment.mark]?.sign ?? "·"}</span>
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

const CONTRACT: [string, string][] = [
  ["status", "Status"], ["recommendation", "Recommendation"], ["failureReason", "Reason"], ["failedAt", "Stopped at"],
  ["completedSteps", "Completed steps"], ["escalationPath", "Levels used"], ["errorType", "Failure"], ["model", "Model"],
];

function Outcome({ data, live }: { data: IncidentDetail; live: boolean }) {
  const [raw, setRaw] = useState(false);
  const known = CONTRACT.filter(([name]) => {
    const value = data.outcome?.[name];
    return value !== null && value !== undefined && value !== "" && !(Array.isArray(value) && value.length === 0);
  });
  return (
    <section class="card">
      <header>
        <h2>Outcome</h2>
        {known.length > 0 ? (
          <button class="button plain tiny" aria-pressed={raw} onClick={() => setRaw(!raw)}>JSON</button>
        ) : null}
      </header>
      <div class="inside">
        {raw ? (
          <pre class="said" tabIndex={0}>{JSON.stringify(data.outcome, null, 2)}</pre>
        ) : known.length > 0 ? (
          <dl class="contract">
            {known.map(([name, label]) => (
              <>
                <dt>{label}</dt>
                <dd>{name === "status" ? <Badge status={String(data.outcome[name])} /> : said(data.outcome[name])}</dd>
              </>
            ))}
          </dl>
        ) : (
          <p class="muted small">{live ? "In progress. The outcome will list the completed steps, where the recovery stopped and what to do next." : "No outcome recorded."}</p>
        )}
        {data.result ? (
          <details>
            <summary>Result</summary>
            <pre class="said" tabIndex={0}>{data.result}</pre>
          </details>
        ) : null}
      </div>
    </section>
  );
}

function said(value: unknown): string {
  return Array.isArray(value) ? value.join(", ") : String(value);
}
