import type { ComponentChildren } from "preact";
import { type Query, address, csrfToken, get, deniedReason, me, post } from "../api";
import { Bars } from "../charts/bars";
import { DailyChart } from "../charts/daily";
import { Sparkline } from "../charts/sparkline";
import { count, dollars, duration, percent, plural, humanize } from "../format";
import { type Resource, useResource } from "../live/use_resource";
import { updateParams, hrefTo } from "../route";
import { WaysIn } from "../ui/command";
import { EmptyState, LoadError } from "../ui/empty";
import { Icon } from "../ui/icons";
import { Ago, Select, Tabs } from "../ui/parts";
import { Providers } from "../ui/providers";
import { showError, showToast } from "../ui/toast";
import type { FailureAnalytics, FailureGroupOut, KpiTile as KpiTileData, RecoveryStats, RungEffectOut } from "../wire";

const PERIODS = [
  { value: "1", label: "24 h" },
  { value: "7", label: "7 days" },
  { value: "30", label: "30 days" },
  { value: "all", label: "All" },
];
const AXES = [
  { value: "kind", label: "kind" },
  { value: "model", label: "model" },
  { value: "project", label: "project" },
  { value: "pattern", label: "prompt" }, // beginning of the caller's prompt
  { value: "prompt", label: "recovery prompt" },
  { value: "tool", label: "tool" },
];
const DAY_SECONDS = 86_400;
const MAX_BARS = 10;
const MAX_GROUPS = 12;
const RELOAD_DELAY_MS = 10_000; // charts that change every second are unreadable
const SPARSE_AXES = new Set(["prompt", "pattern", "tool"]); // most attempts have no value here
const HAND_OVERS = new Set(["fallback", "escalate"]);

/** Returns the query filter, rounded to the minute so that responses can be cached. */
function queryFilter(params: URLSearchParams): Query {
  const period = params.get("period") ?? "7";
  const minute = Math.floor(Date.now() / 60_000) * 60;
  return {
    since: period === "all" ? null : minute - Number(period) * DAY_SECONDS,
    project: params.get("project"), model: params.get("model"), kind: params.get("kind"),
  };
}

export default function Analytics({ params }: { params: URLSearchParams }) {
  const filter = queryFilter(params);
  const key = JSON.stringify([params.get("period"), filter["project"], filter["model"], filter["kind"]]);
  const axis = params.get("by") ?? "kind";
  const load = <T,>(name: string, query: Query = {}, of = key, when = changesFigures, apart = RELOAD_DELAY_MS) =>
    useResource(`${name} ${of}`, (signal) => get<T>(name, { ...filter, ...query }, signal), when, apart);

  const tiles = load<KpiTileData[]>("analytics/success");
  const failures = load<FailureAnalytics>("analytics/failures", { by: axis }, `${key} ${axis}`);
  const groups = load<FailureGroupOut[]>("groups", { limit: 200, since: null, model: null }, key, changesGroups, 2_000);
  const rungs = load<RungEffectOut[]>("analytics/rungs");
  const recovery = load<RecoveryStats[]>("analytics/recovery");
  const cost = load<RungEffectOut[]>("analytics/cost");

  const isEmpty = failures.data?.totalAttempts === 0;
  return (
    <section class="page">
      <header>
        <div>
          <h1>Analytics</h1>
          <p class="muted small">{failures.data ? <>{plural(failures.data.totalFailures, "failure")} in {plural(failures.data.totalAttempts, "attempt")}, {percent(failures.data.failureRate, 1)} · <a href={incidentsHref(filter, {})}>Open the incidents</a></> : "Failure rates and recovery results."}</p>
        </div>
        <Export filter={filter} />
      </header>
      <Filters params={params} kinds={Object.keys(failures.data?.byKind ?? {})} />
      {failures.error && !failures.data ? (
        <LoadError error={failures.error} retry={failures.reload} />
      ) : isEmpty ? (
        <NoAttempts filtered={params.has("period") || params.has("project") || params.has("model") || params.has("kind")} />
      ) : (
        <>
          <div class="tiles">{tiles.data?.map((tile) => <KpiTile key={tile.id} tile={tile} />) ?? [0, 1, 2, 3].map((n) => <div key={n} class="card tile"><p class="skeleton s1" /><p class="skeleton s0" /></div>)}</div>
          <div class="charts">
            <RateByDay failures={failures} filter={filter} />
            <FailuresBy failures={failures} by={axis} filter={filter} />
            <RungRecoveries rungs={rungs} filter={filter} />
            <Groups groups={groups} />
            <OutcomesByKind recovery={recovery} filter={filter} />
            <EscalationCost cost={cost} filter={filter} />
          </div>
        </>
      )}
      <Providers />
    </section>
  );
}

function NoAttempts({ filtered }: { filtered: boolean }) {
  return (
    <EmptyState title="No attempts in this period">
      <p>{filtered ? "Choose a longer period or other filters." : "Choose a longer period, or let an agent write to this journal:"}</p>
      {filtered ? <a class="button" href={hrefTo(["analytics"], { period: "all" })}>Show all attempts</a> : <WaysIn />}
    </EmptyState>
  );
}

const changesGroups = ({ name }: { name: string }) => name === "attempt_failed" || name === "act";
const changesFigures = ({ name }: { name: string }) => name === "attempt_succeeded" || name === "closed" || name === "act";

function Filters({ params, kinds }: { params: URLSearchParams; kinds: string[] }) {
  const value = (name: string) => params.get(name) ?? "";
  const options = (label: string, names: readonly string[]) => [{ value: "", label }, ...names.map((name) => ({ value: name, label: humanize(name) || "(none)" }))];
  const kindNames = value("kind") && !kinds.includes(value("kind")) ? [...kinds, value("kind")] : kinds;
  return (
    <div class="filters">
      <Tabs label="Period" value={params.get("period") ?? "7"} choices={PERIODS} pick={(period) => updateParams({ period: period === "7" ? null : period })} />
      <Select label="Project" value={value("project")} choices={options("All projects", me.value?.projects ?? [])} pick={(project) => updateParams({ project })} />
      <Select label="Model" value={value("model")} choices={options("All models", me.value?.models ?? [])} pick={(model) => updateParams({ model })} />
      <Select label="Kind" value={value("kind")} choices={options("All kinds", kindNames)} pick={(kind) => updateParams({ kind })} />
    </div>
  );
}

function Export({ filter }: { filter: Query }) {
  return (
    <details class="menu">
      <summary class="button"><Icon name="download" size={15} /> Export</summary>
      <div>
        {["incidents", "attempts", "events"].map((what) => (
          <div key={what}>
            <h3>{what[0]?.toUpperCase()}{what.slice(1)}</h3>
            <p class="actions">
              {["csv", "jsonl", "parquet"].map((format) => (
                <a key={format} class="button tiny" download={`rung-${what}.${format}`} href={address("export", { what, format, ...filter, csrf: csrfToken() })}>{format.toUpperCase()}</a>
              ))}
            </p>
          </div>
        ))}
      </div>
    </details>
  );
}

interface KpiText {
  label: string;
  value: (tile: KpiTileData) => string;
  goal: (goal: number) => string;
  details: (tile: KpiTileData) => string;
}

const share = (tile: KpiTileData) => percent(tile.share);

const KPIS: Record<KpiTileData["id"], KpiText> = {
  autoRecovered: { label: "Recovered automatically", value: share, goal: (goal) => `goal ${percent(goal)} or more`, details: (tile) => `${count(tile.numerator)} of ${plural(tile.denominator, "transient error")}` },
  manualInterventions: { label: "Manual restarts", value: (tile) => count(tile.numerator), goal: (goal) => `goal ${percent(goal)} fewer`, details: restartDetails },
  stuckEscalated: { label: "Stuck sessions escalated", value: share, goal: (goal) => `goal ${percent(goal)} or more`, details: (tile) => `${count(tile.numerator)} of ${plural(tile.denominator, "stuck session")}` },
  meanTimeToRecovery: { label: "Mean time to recovery", value: (tile) => duration(tile.share), goal: (goal) => `goal under ${duration(goal)}`, details: (tile) => `of ${plural(tile.denominator, "recovery", "recoveries")}` },
};

/** "3.2 per 100 sessions, 60 % fewer than before (5)" */
function restartDetails(tile: KpiTileData): string {
  const rate = tile.perHundredSessions === null ? `in ${plural(tile.denominator, "session")}` : `${tile.perHundredSessions.toFixed(1)} per 100 sessions`;
  if (tile.before === null) return rate;
  if (tile.reduction === null) return `${rate}, before: ${count(tile.before)}`;
  return `${rate}, ${percent(Math.abs(tile.reduction))} ${tile.reduction >= 0 ? "fewer" : "more"} than before (${count(tile.before)})`;
}

/** A figure. It is no link: the list of incidents has no filter for exactly what a figure counts. */
function KpiTile({ tile }: { tile: KpiTileData }) {
  const { label, value, goal, details } = KPIS[tile.id];
  return (
    <div class="card tile" title={tile.definition}>
      <span class="tile-label">{label}</span>
      <span class="tile-value">{tile.value === null ? "–" : value(tile)}</span>
      <span class="tile-foot">
        <span>
          {tile.goal !== null && tile.isMet !== null ? <span class={`goal ${tile.isMet ? "met" : "unmet"}`}>{goal(tile.goal)}</span> : null}
          {details(tile)}
        </span>
        <Sparkline values={tile.trend.map((one) => one.value)} label={`${label}, by day`} width={84} />
      </span>
    </div>
  );
}

/** Returns the address of the incidents that a chart is about. */
function incidentsHref(filter: Query, extra: Record<string, string | number | null>): string {
  return hrefTo(["incidents"], { ...(filter as Record<string, string | number | null>), ...extra });
}

function Card({ title, resource, fullWidth = false, tools, children }: { title: string; resource: Resource<unknown>; fullWidth?: boolean; tools?: ComponentChildren; children: ComponentChildren }) {
  return (
    <section class={`card ${fullWidth ? "full-width" : ""}`}>
      <header>
        <h2>{title}</h2>
        {tools}
      </header>
      <div class="card-body">
        {resource.data ? children : resource.error ? <LoadError error={resource.error} retry={resource.reload} /> : <><p class="skeleton s0" /><p class="skeleton s1" /><p class="skeleton s2" /></>}
      </div>
    </section>
  );
}

function RateByDay({ failures, filter }: { failures: Resource<FailureAnalytics>; filter: Query }) {
  const days = failures.data?.days ?? [];
  return (
    <Card title="Failure rate by day" resource={failures} fullWidth>
      <DailyChart
        label="Failure rate by day"
        days={days.map((one) => ({
          at: one.at, value: one.attempts ? one.rate : null,
          text: `${percent(one.rate, 1)}, ${count(one.failures)} of ${count(one.attempts)} attempts`,
          href: incidentsHref(filter, { since: one.at, until: one.at + DAY_SECONDS }),
        }))}
      />
    </Card>
  );
}

function FailuresBy({ failures, by, filter }: { failures: Resource<FailureAnalytics>; by: string; filter: Query }) {
  const rows = failures.data?.rates.filter((row) => row.failures > 0 && (row.key !== "" || !SPARSE_AXES.has(by))).slice(0, MAX_BARS) ?? [];
  return (
    <Card title="Failures by" resource={failures}
      tools={<Tabs label="Failures by" value={by} choices={AXES} pick={(axis) => updateParams({ by: axis === "kind" ? null : axis })} />}>
      {rows.length === 0 ? <p class="muted small">{by === "prompt" ? "No recovery prompt was used in this period." : by === "tool" ? "No failure names a tool in this period." : "No failures in this period."}</p> : null}
      <Bars
        label={`Failures by ${by}`}
        bars={rows.map((row) => ({
          key: row.key, label: (by === "kind" ? humanize(row.key) : row.key) || "(none)", value: row.failures,
          valueText: <><b>{count(row.failures)}</b> · {percent(row.rate, 1)}</>,
          href: row.key === "" ? null : incidentsHref(filter, { [by]: row.key }),
        }))}
      />
      {rows.length > 0 ? <p class="quiet small">Number of failures, and their share of {by === "kind" || by === "tool" ? "all attempts" : "the attempts in each row"}.</p> : null}
    </Card>
  );
}

function RungRecoveries({ rungs, filter }: { rungs: Resource<RungEffectOut[]>; filter: Query }) {
  const rows = rungs.data?.filter((row) => row.rung) ?? [];
  return (
    <Card title="Recoveries by rung" resource={rungs}
      tools={<span class="legend"><span class="recovered">recovered</span><span class="running">tried</span></span>}>
      {rows.length === 0 ? <p class="muted small">No rung was used in this period.</p> : null}
      <Bars
        label="Recoveries by rung"
        bars={rows.map((row) => ({
          key: row.rung, label: row.rung, value: row.tried, part: row.saved,
          valueText: <><b>{percent(row.tried ? row.saved / row.tried : null)}</b> of {count(row.tried)} · {row.meanSeconds == null ? "–" : duration(row.meanSeconds)}</>,
          href: incidentsHref(filter, { rung: row.rung }),
        }))}
      />
      {rows.length > 0 ? <p class="quiet small">Share of tries that recovered the failure, and mean time to recovery.</p> : null}
    </Card>
  );
}

const GROUP_STATES: Record<string, { label: string; tone: string }> = {
  open: { label: "open", tone: "open" }, regression: { label: "regression", tone: "failed" },
  resolved: { label: "resolved", tone: "recovered" }, snoozed: { label: "snoozed", tone: "succeeded" },
};

/** Returns regressions and open groups first, then by count, so that the order is stable. */
function mostImportant(groups: readonly FailureGroupOut[]): FailureGroupOut[] {
  const weight = (group: FailureGroupOut) => (group.state === "regression" ? 0 : group.state === "open" ? 1 : 2);
  return [...groups].sort((one, other) => weight(one) - weight(other) || other.seen - one.seen).slice(0, MAX_GROUPS);
}

function Groups({ groups }: { groups: Resource<FailureGroupOut[]> }) {
  const denied = deniedReason("act");
  const act = async (group: FailureGroupOut, what: "resolve" | "reopen" | "snooze") => {
    try {
      await post(`groups/${encodeURIComponent(group.project || "-")}/${encodeURIComponent(group.fingerprint)}/${what}`);
      showToast(what === "resolve" ? "Resolved. It appears in the inbox if it recurs." : what === "snooze" ? "Snoozed for 24 hours" : "Reopened");
      groups.reload();
    } catch (error) {
      showError(error);
    }
  };
  return (
    <Card title="Failure groups" resource={groups} fullWidth>
      {groups.data?.length === 0 ? <p class="muted small">No failures recorded.</p> : (
        <div class="scroll-x" tabIndex={0} role="region" aria-label="Failure groups">
          <table class="table groups">
            <thead>
              <tr><th>Failure</th><th>Last 14 days</th><th class="number">Failures</th><th>Last seen</th><th>State</th><th><span class="visually-hidden">Actions</span></th></tr>
            </thead>
            <tbody>
              {mostImportant(groups.data ?? []).map((group) => {
                const state = GROUP_STATES[group.state] ?? { label: group.state, tone: "running" };
                const closed = group.state === "resolved" || group.state === "snoozed";
                return (
                  <tr key={`${group.project}/${group.fingerprint}`}>
                    <td class="failure-cell">
                      <GroupName group={group} />
                      <span class="quiet small"> {group.project}</span>
                      <span class="muted small truncate" title={group.message}>{group.message}</span>
                    </td>
                    <td><Sparkline values={group.trend} label={`Count by day: ${group.trend.join(", ")}`} /></td>
                    <td class="number">{count(group.seen)}</td>
                    <td class="quiet small"><Ago at={group.lastAt} /></td>
                    <td><span class={`badge ${state.tone}`}>{state.label}</span></td>
                    <td>
                      <span class="actions nowrap">
                        {group.example ? <a class="button tiny plain" href={hrefTo(["incidents", group.example])}>Example</a> : null}
                        {closed ? (
                          <button class="button tiny" disabled={denied !== null} title={denied ?? undefined} onClick={() => act(group, "reopen")}>Reopen</button>
                        ) : (
                          <>
                            <button class="button tiny" disabled={denied !== null} title={denied ?? undefined} onClick={() => act(group, "resolve")}>Resolve</button>
                            <button class="button tiny plain" disabled={denied !== null} title={denied ?? undefined} onClick={() => act(group, "snooze")}>Snooze</button>
                          </>
                        )}
                      </span>
                    </td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
    </Card>
  );
}

/** Links to the incidents of a group. The list cannot show those without a project alone. */
function GroupName({ group }: { group: FailureGroupOut }) {
  const isListable = group.project !== "" || (me.value?.projects ?? []).every((project) => project === "");
  const name = humanize(group.kind);
  if (!isListable) return <span class="row-name">{name}</span>;
  return <a class="row-name" href={hrefTo(["incidents"], { fingerprint: group.fingerprint, project: group.project })}>{name}</a>;
}

function OutcomesByKind({ recovery, filter }: { recovery: Resource<RecoveryStats[]>; filter: Query }) {
  const tones = ["recovered", "partial", "blocked", "failed"] as const;
  return (
    <Card title="Outcomes by kind" resource={recovery} tools={<span class="legend">{tones.map((tone) => <span key={tone} class={tone}>{tone}</span>)}</span>}>
      {recovery.data?.length === 0 ? <p class="muted small">No incident ended in this period.</p> : null}
      <ul class="bars">
        {recovery.data?.slice(0, MAX_BARS).map((row) => (
          <li key={row.kind}>
            <div class="bar" title={tones.map((tone) => `${row[tone]} ${tone}`).join(", ")}>
              <a class="bar-label truncate" href={incidentsHref(filter, { kind: row.kind })}>{humanize(row.kind)}</a>
              <span class="outcome-bar" aria-hidden="true">{tones.map((tone) => <i key={tone} class={tone} style={{ width: `${(row[tone] / Math.max(1, row.incidents)) * 100}%` }} />)}</span>
              <span class="bar-value"><b>{percent(row.rate)}</b> of {count(row.incidents)} · {duration(row.meanSeconds)}</span>
            </div>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function EscalationCost({ cost, filter }: { cost: Resource<RungEffectOut[]>; filter: Query }) {
  const rows = cost.data?.filter((row) => HAND_OVERS.has(row.rung)) ?? [];
  const sum = (pick: (row: RungEffectOut) => number, from = rows) => from.reduce((total, row) => total + pick(row), 0);
  const spent = sum((row) => row.dollars);
  const saved = sum((row) => row.saved);
  return (
    <Card title="Cost of escalation" resource={cost}>
      <dl class="cost-summary">
        <div><dt>Hand-overs</dt><dd>{count(sum((row) => row.tried))}</dd></div>
        <div><dt>Recovered</dt><dd>{count(saved)}</dd></div>
        <div><dt>Cost</dt><dd>{dollars(spent)}</dd></div>
        <div><dt>Cost per recovery</dt><dd>{saved ? dollars(spent / saved) : "–"}</dd></div>
      </dl>
      <Bars
        label="Escalation by model"
        bars={rows.map((row) => ({
          key: `${row.rung} ${row.model}`, label: row.model || "(none)", value: row.tried, part: row.saved,
          valueText: <><b>{dollars(row.dollars)}</b> · {count(row.saved)} of {count(row.tried)}</>,
          href: incidentsHref(filter, { rung: row.rung, model: row.model }),
        }))}
      />
    </Card>
  );
}
