import { useEffect } from "preact/hooks";
import { deniedReason, get, post } from "../api";
import { count, dollars, duration, fullDateTime, percent, plural, shortMoment } from "../format";
import { now } from "../live/clock";
import { countFiring, firingCount } from "../live/inbox";
import { usePoll } from "../live/use_poll";
import { type Resource, useResource } from "../live/use_resource";
import { hrefTo, updateParams } from "../route";
import { Command } from "../ui/command";
import { EmptyState, LoadError, Loading } from "../ui/empty";
import { Ago, Select } from "../ui/parts";
import { showError, showToast } from "../ui/toast";
import type { AlertDeliveryOut, AlertEntryOut, AlertHistoryOut, AlertRuleOut, AlertSilenceOut, AlertTestOut, AlertsOut, UntrustedAlertsOut } from "../wire";

const POLL_MS = 5_000;
const SILENCES = [
  { value: "", label: "Silence" },
  { value: "30", label: "for 30 min" },
  { value: "120", label: "for 2 h" },
  { value: "480", label: "for 8 h" },
  { value: "1440", label: "for 24 h" },
];
const METRICS: Record<AlertRuleOut["when"], string> = {
  failure_rate: "failed attempts",
  unrecovered: "incidents not recovered",
  cost: "cost",
  stuck: "stuck sessions",
  parked: "parked work",
  dead_workers: "dead workers",
  unanswered: "unanswered questions",
};
const WAITING = new Set(["parked", "unanswered"]);
const DELIVERY_TONES: Record<AlertDeliveryOut["state"], string> = { sent: "recovered", waiting: "retrying", failed: "failed" };
const EVENT_TONES: Record<AlertEntryOut["event"], string> = { fired: "failed", resolved: "recovered", test: "succeeded" };
const EXAMPLE = `[alerts.channels.ops]
type = "slack"
url_env = "SLACK_WEBHOOK_URL"

[alerts.rules.failing]
when = "failure_rate"
threshold = 0.2
window = 900
channels = ["ops"]`;

export default function Alerts({ params }: { params: URLSearchParams }) {
  const rule = params.get("rule");
  const alerts = useResource("alerts", (signal) => get<AlertsOut>("alerts", {}, signal));
  const history = useResource(`alert-history ${rule}`, (signal) => get<AlertHistoryOut>("alerts/history", { rule, limit: 100 }, signal));
  const reload = () => {
    alerts.reload();
    history.reload();
  };
  usePoll(reload, POLL_MS);
  const rules = alerts.data?.rules;
  const firing = alerts.data ? countFiring(alerts.data) : 0;
  const cooling = rules?.filter((one) => one.coolingUntil !== null).length ?? 0;
  useEffect(() => {
    if (alerts.data) firingCount.value = firing;
  }, [alerts.data]);
  return (
    <section class="page alerts">
      <header>
        <div class="page-head-text">
          <h1>Alerts</h1>
          {rules && rules.length > 0 ? <p class="muted small">{firing > 0 ? `${count(firing)} of ${plural(rules.length, "rule")} firing` : `${plural(rules.length, "rule")}, none firing`}{cooling > 0 ? `, ${count(cooling)} cooling down` : ""}</p> : null}
        </div>
      </header>
      {!rules ? (alerts.error ? <LoadError error={alerts.error} retry={alerts.reload} /> : <Loading />) : rules.length === 0 ? (alerts.data?.untrusted ? <Untrusted file={alerts.data.untrusted} /> : <NoRules />) : <Rules rules={rules} reload={reload} />}
      {rules ? <History history={history} rule={rule} isUnused={rules.length === 0} /> : null}
    </section>
  );
}

function NoRules() {
  return (
    <EmptyState title="No alert rules">
      <p>Rules are in the <code>rung.toml</code> of the directory in which the service was started. Add some, restart the service, and send a test:</p>
      <Command text={EXAMPLE} label="Copy the settings" />
      <Command text={"rung alerts check\nrung alerts test failing"} />
    </EmptyState>
  );
}

function Untrusted({ file }: { file: UntrustedAlertsOut }) {
  return (
    <EmptyState title="Alerts are off">
      <p><code class="wrap">{file.path}</code> has an <code>[alerts]</code> table, but {file.decision === "denied" ? "the file is denied" : "its present content is not trusted"}. No rule is evaluated, and alerts that fired before stay open.</p>
      <p>Review the file, run this command in the account of the service, and restart the service:</p>
      <Command text={file.command} />
    </EmptyState>
  );
}

function Rules({ rules, reload }: { rules: AlertRuleOut[]; reload: () => void }) {
  return (
    <section class="card" aria-label="Rules">
      <header><h2>Rules</h2><span class="quiet small">Every service, gateway and crew with these rules evaluates them.</span></header>
      <div class="card-body scroll-x" tabIndex={0} role="region" aria-label="Rules">
        <table class="table">
          <thead><tr><th>Rule</th><th>State</th><th class="number">Now</th><th>Fires at</th><th>Channels</th><th>Actions</th></tr></thead>
          <tbody>{rules.map((rule) => <RuleRow key={rule.name} rule={rule} reload={reload} />)}</tbody>
        </table>
      </div>
    </section>
  );
}

function RuleRow({ rule, reload }: { rule: AlertRuleOut; reload: () => void }) {
  return (
    <tr>
      <td>
        <a class="row-name" href={hrefTo(["alerts"], { rule: rule.name })}>{rule.name}</a>
        <div class="muted small">{METRICS[rule.when]}{rule.project === null ? "" : `, project ${rule.project || "(none)"}`}</div>
      </td>
      <td>
        {rule.coolingUntil === null ? <State state={rule.state} since={rule.since} /> : <Cooling until={rule.coolingUntil} />}
        {rule.scopes.filter((one) => one.state === "firing").map((one) => (
          <div key={one.scope} class="small">{one.scope.replace(/^crew:/, "crew ")} <State state={one.state} since={one.since} /></div>
        ))}
      </td>
      <td class="number nowrap" data-label="Now" title={rule.detail}><a href={rowsBehind(rule)}>{figure(rule.when, rule.value)}</a></td>
      <td class="nowrap" data-label="Fires at">{figure(rule.when, rule.threshold)} <span class="quiet small">{WAITING.has(rule.when) ? "waiting for" : "in"} {duration(rule.window)}</span></td>
      <td class="small whole-row" data-label="Channels">{rule.channels.join(", ") || <span class="muted">history only</span>}</td>
      <td class="whole-row"><RuleActions rule={rule} reload={reload} /></td>
    </tr>
  );
}

function State({ state, since }: { state: "ok" | "firing"; since: number | null }) {
  return (
    <>
      <span class={`badge ${state === "firing" ? "failed" : "recovered"}`}>{state}</span>
      {since !== null ? <span class="quiet small block"><Ago at={since} /></span> : null}
    </>
  );
}

function Cooling({ until }: { until: number }) {
  return (
    <>
      <span class="badge retrying">cooling down</span>
      <span class="quiet small block" title={fullDateTime(until)}>over the threshold; may fire again at {shortMoment(until, now.value)}</span>
    </>
  );
}

function RuleActions({ rule, reload }: { rule: AlertRuleOut; reload: () => void }) {
  const denied = deniedReason("act");
  const path = `alerts/${encodeURIComponent(rule.name)}`;
  const act = async (work: () => Promise<void>) => {
    try {
      await work();
    } catch (error) {
      showError(error);
    }
    reload();
  };
  const test = () => act(async () => {
    const { errors } = await post<AlertTestOut>(`${path}/test`);
    const refused = Object.entries(errors).filter(([, error]) => error);
    if (refused.length > 0) showToast(refused.map(([channel, error]) => `${channel}: ${error}`).join("; "), true);
    else showToast(Object.keys(errors).length > 0 ? `Test sent to ${Object.keys(errors).join(", ")}` : `${rule.name} has no channels; the test is in the history`);
  });
  const silence = (minutes: number) => act(async () => {
    const { silencedUntil } = await post<AlertSilenceOut>(`${path}/silence`, { minutes });
    showToast(minutes ? `${rule.name} is silenced until ${shortMoment(silencedUntil, now.peek())}` : `${rule.name} is no longer silenced`);
  });
  const isSilenced = rule.silencedUntil !== null && rule.silencedUntil > now.value;
  return (
    <div class="actions" title={denied ?? undefined}>
      <button class="button tiny" disabled={denied !== null} onClick={test} aria-label={`Test ${rule.name}`}>Test</button>
      {isSilenced ? (
        <button class="button tiny" disabled={denied !== null} onClick={() => silence(0)} aria-label={`End the silence of ${rule.name}`}>
          Silenced until {shortMoment(rule.silencedUntil ?? 0, now.value)} ×
        </button>
      ) : denied === null ? (
        <Select label={`Silence ${rule.name}`} value="" choices={SILENCES} pick={(minutes) => minutes && void silence(Number(minutes))} />
      ) : null}
    </div>
  );
}

function History({ history, rule, isUnused }: { history: Resource<AlertHistoryOut>; rule: string | null; isUnused: boolean }) {
  const entries = history.data?.entries;
  if (isUnused && entries?.length === 0) return null;
  return (
    <section class="card" aria-label="History">
      <header>
        <h2>History</h2>
        {rule ? <button class="button tiny" onClick={() => updateParams({ rule: null })} aria-label="Remove filter: rule">rule: {rule} ×</button> : <span class="quiet small">of 90 days</span>}
      </header>
      <div class="card-body scroll-x" tabIndex={0} role="region" aria-label="History">
        {!entries ? (history.error ? <LoadError error={history.error} retry={history.reload} /> : <p class="skeleton s0" />) : entries.length === 0 ? (
          <p class="muted">No alert has fired.</p>
        ) : (
          <table class="table">
            <thead><tr><th>Time</th><th>Event</th><th>What</th><th>Notified</th></tr></thead>
            <tbody>{entries.map((entry) => <Entry key={entry.id} entry={entry} />)}</tbody>
          </table>
        )}
      </div>
    </section>
  );
}

function Entry({ entry }: { entry: AlertEntryOut }) {
  return (
    <tr>
      <td class="nowrap quiet" title={fullDateTime(entry.at)}><Ago at={entry.at} /></td>
      <td><span class={`badge ${EVENT_TONES[entry.event]}`}>{entry.event}</span></td>
      <td class="wrap whole-row"><span class="row-name">{entry.rule}</span>{entry.scope ? <span class="quiet small"> {entry.scope.replace(/^crew:/, "crew ")}</span> : null}<div class="muted small">{entry.summary}</div></td>
      <td class="small whole-row" data-label="Notified">
        {entry.deliveries.map((one) => (
          <div key={one.channel}><span class={`badge ${DELIVERY_TONES[one.state]}`}>{one.channel} {one.state}</span>{one.error ? <span class="quiet wrap"> {one.error}</span> : null}</div>
        ))}
        {entry.silenced ? <span class="muted">silenced</span> : entry.deliveries.length === 0 ? <span class="muted">nobody</span> : null}
      </td>
    </tr>
  );
}

function figure(when: AlertRuleOut["when"], value: number | null): string {
  if (value === null) return "unknown";
  return when === "failure_rate" ? percent(value, value < 0.1 ? 1 : 0) : when === "cost" ? dollars(value) : count(value);
}

/** Returns the address of the rows that a figure counts. */
function rowsBehind({ when, project, window }: AlertRuleOut): string {
  const since = Math.floor(now.peek() - window);
  if (when === "failure_rate" || when === "unrecovered") return hrefTo(["incidents"], { project, since });
  if (when === "cost") return hrefTo(["sessions"], { project, sort: "cost" });
  if (when === "stuck") return hrefTo(["sessions"], { project, sort: "failures" });
  return hrefTo([when === "dead_workers" ? "fleet" : "inbox"]);
}
