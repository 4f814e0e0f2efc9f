import { useState } from "preact/hooks";
import { ApiError, call, deniedReason, get, me, post } from "../api";
import { dollars, percent } from "../format";
import { useResource } from "../live/use_resource";
import { hrefTo } from "../route";
import { EmptyState, LoadError, Loading } from "../ui/empty";
import { showError, showToast } from "../ui/toast";
import type { BudgetOut, BudgetsIn, BudgetsOut } from "../wire";

const SCOPES: Record<BudgetOut["scope"], string> = { month: "all projects, this month", project: "project, this month", session: "session" };
const changesSpend = ({ name }: { name: string }) => name === "attempt_succeeded" || name === "attempt_failed" || name === "act";
const RELOAD_DELAY_MS = 5_000;

export default function Budgets() {
  const budgets = useResource("budgets", (signal) => get<BudgetsOut>("budgets", {}, signal), changesSpend, RELOAD_DELAY_MS);
  const { data } = budgets;
  return (
    <section class="page narrow budgets">
      <header>
        <div class="page-head-text">
          <h1>Budgets</h1>
          {data ? <p class="muted small"><a href={hrefTo(["sessions"], { sort: "cost" })}>{dollars(data.spentThisMonth)}</a> spent this month (UTC)</p> : null}
        </div>
      </header>
      {!data ? (budgets.error ? <LoadError error={budgets.error} retry={budgets.reload} /> : <Loading />) : (
        <>
          {data.items.length > 0 ? <Spending items={data.items} reload={budgets.reload} /> : hasLimits(data) ? null : <NoBudgets />}
          <Limits key={data.version} budgets={data} reload={budgets.reload} />
        </>
      )}
    </section>
  );
}

const hasLimits = (data: BudgetsOut): boolean => data.monthly !== null || data.session !== null || Object.keys(data.projects).length > 0;

function NoBudgets() {
  return (
    <EmptyState title="No budgets">
      <p>A budget stops attempts that would cost more than it allows: in the gateway, in retries and in escalations. Set one below. Limits in <code>[gateway.budgets]</code> of <code>rung.toml</code> hold as well.</p>
    </EmptyState>
  );
}

function Spending({ items, reload }: { items: BudgetOut[]; reload: () => void }) {
  const denied = deniedReason("act");
  const acknowledge = async (item: BudgetOut) => {
    try {
      await post(`alerts/${item.id}/acknowledge`);
      showToast(`Acknowledged: ${item.name}`);
      reload();
    } catch (error) {
      showError(error);
    }
  };
  return (
    <section class="card" aria-label="Spending">
      <header><h2>Spending</h2></header>
      <ul class="card-body budget-rows">
        {items.map((item) => (
          <li key={item.id} class={tone(item)}>
            <div class="budget-head">
              <a class="row-name" href={sessionsOf(item)}>{item.name}</a>
              <span class="quiet small">{SCOPES[item.scope]}</span>
              <span class="budget-amount">{dollars(item.spent)} of {dollars(item.limit)}, {percent(item.share)}</span>
            </div>
            <meter min={0} max={1} value={Math.min(1, item.share)} aria-label={`${item.name}: ${percent(item.share)} spent`} />
            {item.alert !== null && !item.acknowledged ? (
              <p class="small actions">
                {item.alert} % of this budget is spent.
                <button class="button tiny" disabled={denied !== null} title={denied ?? undefined} onClick={() => acknowledge(item)}>Acknowledge</button>
              </p>
            ) : null}
          </li>
        ))}
      </ul>
    </section>
  );
}

const tone = ({ share }: BudgetOut): string => (share >= 1 ? "failed" : share >= 0.75 ? "retrying" : "recovered");

/** Returns the address of the sessions that spent a budget. */
function sessionsOf(item: BudgetOut): string {
  if (item.scope === "session") return hrefTo(["sessions", item.name]);
  return hrefTo(["sessions"], { sort: "cost", project: item.scope === "project" ? item.name : null });
}

interface ProjectLimit {
  name: string;
  limit: string;
}

/** Form of the limits that operators set; an empty field is no limit. */
function Limits({ budgets, reload }: { budgets: BudgetsOut; reload: () => void }) {
  const text = (limit: number | null) => (limit === null ? "" : String(limit));
  const [month, setMonth] = useState(text(budgets.monthly));
  const [session, setSession] = useState(text(budgets.session));
  const [projects, setProjects] = useState<ProjectLimit[]>(Object.entries(budgets.projects).map(([name, limit]) => ({ name, limit: String(limit) })));
  const [error, setError] = useState<string | null>(null);
  const denied = deniedReason("admin");
  const change = (at: number, changes: Partial<ProjectLimit>) => setProjects((rows) => rows.map((row, n) => (n === at ? { ...row, ...changes } : row)));
  const save = async (event: Event) => {
    event.preventDefault();
    const named = projects.filter((row) => row.name && row.limit !== "");
    const body: BudgetsIn = {
      monthly: month === "" ? null : Number(month), session: session === "" ? null : Number(session),
      projects: Object.fromEntries(named.map((row) => [row.name, Number(row.limit)])),
    };
    try {
      await call("PUT", "budgets", { body, headers: { "If-Match": `"${budgets.version}"` } });
      setError(null);
      showToast("Budgets saved");
      reload();
    } catch (problem) {
      setError(problem instanceof ApiError && problem.status === 412 ? "Somebody else changed the budgets. Reload the page." : String(problem instanceof Error ? problem.message : problem));
    }
  };
  return (
    <section class="card" aria-label="Limits">
      <header><h2>Limits</h2><span class="quiet small">in US dollars; empty: no limit</span></header>
      <form class="card-body budget-form" onSubmit={save}>
        <Amount label="All projects, per month" value={month} set={setMonth} disabled={denied !== null} />
        <Amount label="Each session" value={session} set={setSession} disabled={denied !== null} />
        {projects.map((row, n) => (
          <div key={n} class="budget-project">
            <label class="field"><span>Project</span>
              <input class="input" list="budget-projects" value={row.name} maxLength={200} disabled={denied !== null} onInput={(event) => change(n, { name: event.currentTarget.value })} />
            </label>
            <Amount label="Per month" value={row.limit} set={(limit) => change(n, { limit })} disabled={denied !== null} />
            <button class="button plain tiny" type="button" disabled={denied !== null} onClick={() => setProjects((rows) => rows.filter((_, at) => at !== n))}>Remove</button>
          </div>
        ))}
        <datalist id="budget-projects">{me.value?.projects.map((name) => <option key={name} value={name} />)}</datalist>
        {error ? <p class="error-text" role="alert">{error}</p> : null}
        {denied ? <p class="disabled-reason">{denied}</p> : null}
        <div class="actions">
          <button class="button" type="button" disabled={denied !== null} onClick={() => setProjects((rows) => [...rows, { name: "", limit: "" }])}>Add a project</button>
          <button class="button primary" disabled={denied !== null}>Save</button>
        </div>
      </form>
    </section>
  );
}

function Amount({ label, value, set, disabled }: { label: string; value: string; set: (value: string) => void; disabled: boolean }) {
  return (
    <label class="field">
      <span>{label}</span>
      <input class="input" type="number" min={0} max={1e9} step="any" inputMode="decimal" value={value} disabled={disabled} onInput={(event) => set(event.currentTarget.value)} />
    </label>
  );
}
