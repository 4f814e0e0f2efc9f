import { useRef, useState } from "preact/hooks";
import { get, deniedReason, post } from "../api";
import { count, plural, humanize } from "../format";
import { usePoll } from "../live/use_poll";
import { useResource } from "../live/use_resource";
import { updateParams, hrefTo } from "../route";
import { Leader, STATES, StateBadge } from "../ui/crew";
import { Command } from "../ui/command";
import { EmptyState, LoadError, Loading } from "../ui/empty";
import { Icon } from "../ui/icons";
import { useKeys } from "../ui/shortcuts";
import { Until, WakeButton } from "../ui/parked";
import { Ago, Countdown, Select } from "../ui/parts";
import { showError, showToast } from "../ui/toast";
import type { ActionResult, CrewOut, PoolOut, TaskOut, TaskPage } from "../wire";

const PAGE_SIZE = 100;
const MAX_TASKS = 500;

export default function Crew({ params }: { params: URLSearchParams }) {
  const crews = useResource("crews", (signal) => get<CrewOut[]>("crews", {}, signal));
  usePoll(crews.reload);
  if (!crews.data) return <section class="page">{crews.error ? <LoadError error={crews.error} retry={crews.reload} /> : <Loading />}</section>;
  const crew = crews.data.find((one) => one.name === params.get("crew")) ?? crews.data[0];
  return (
    <section class="page">
      <header>
        <div class="page-head-text">
          <h1>Crew</h1>
          {crew ? <p class="muted small wrap">{crew.place}</p> : null}
        </div>
        {crew ? <StopButtons crew={crew} /> : null}
      </header>
      {crew ? <Board key={crew.name} crew={crew} crews={crews.data} params={params} /> : <NoCrew />}
    </section>
  );
}

function NoCrew() {
  return (
    <EmptyState title="No crew connected">
      <p>A conductor assigns tasks to workers, monitors them and restarts them when they fail. Start a crew and connect it:</p>
      <Command text={"rung crew run plan.toml\nrung serve --crew plan.db"} />
      <p class="small">Stop this service first, or add <code>--port 0</code>: one port serves one service.</p>
    </EmptyState>
  );
}

function Board({ crew, crews, params }: { crew: CrewOut; crews: CrewOut[]; params: URLSearchParams }) {
  const [limit, setLimit] = useState(PAGE_SIZE);
  const search = useRef<HTMLInputElement>(null);
  const filter = { crew: crew.name, state: params.get("state"), q: params.get("q"), limit };
  const tasks = useResource(JSON.stringify(filter), (signal) => get<TaskPage>("tasks", filter, signal));
  usePoll(tasks.reload);
  useKeys({ "/": () => search.current?.focus() });
  const rows = tasks.data?.items ?? [];
  const needingPerson = rows.filter((row) => row.needsPerson);
  const others = rows.filter((row) => !row.needsPerson);
  const lanes = STATES.map((state) => ({ state, cards: others.filter((row) => row.state === state) })).filter(({ cards }) => cards.length > 0);
  // The crew's counts are polled separately and ignore the search, so they are used only while more tasks can be loaded.
  const total = (state: string, shown: number) => tasks.data?.nextCursor ? Math.max(shown, crew.counts[state] ?? 0) : shown;
  return (
    <>
      {crew.trouble ? <p class="notice failed" role="alert">{crew.trouble}</p> : null}
      {crew.pools.map((pool) => <ClosedPool key={pool.name} crew={crew.name} pool={pool} />)}
      {Object.entries(crew.facts).filter(([name]) => !name.startsWith("pool ")).map(([name, why]) => <p key={name} class="notice retrying">{name}: {why}</p>)}
      <div class="crew-leaders">
        <Leader name="conductor" leader={crew.conductor} />
        <Leader name="watchdog" leader={crew.watchdog} />
        <span class="quiet small">{plural(crew.tasks, "task")}{crew.counts.complete ? <>, <a href={hrefTo(["crew"], { crew: crew.name, state: "complete" })}>{count(crew.counts.complete)} complete</a></> : null}</span>
      </div>
      <div class="filters">
        <label class="search">
          <span class="visually-hidden">Search tasks</span>
          <Icon name="search" size={16} />
          <input ref={search} class="input" type="search" placeholder="Search" value={params.get("q") ?? ""} onChange={(event) => updateParams({ q: event.currentTarget.value.trim() })}
            onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()} />
        </label>
        {crews.length > 1 ? <Select label="Crew" value={crew.name} choices={crews.map(({ name }) => ({ value: name, label: name }))} pick={(name) => updateParams({ crew: name })} /> : null}
        <Select label="State" value={params.get("state") ?? ""} pick={(state) => updateParams({ state })}
          choices={[{ value: "", label: "All states" }, ...STATES.map((state) => ({ value: state, label: `${humanize(state)} (${count(crew.counts[state] ?? 0)})` }))]} />
      </div>
      {tasks.error && !tasks.data ? <LoadError error={tasks.error} retry={tasks.reload} /> : null}
      {!tasks.data && !tasks.error ? <Loading rows={6} /> : null}
      {needingPerson.length > 0 ? (
        <section class="card ask" aria-labelledby="needs-attention">
          <header><h2 id="needs-attention">Needs attention</h2></header>
          <ul class="card-body list">
            {needingPerson.map((row) => (
              <li key={row.id}>
                <a class="list-link" href={hrefTo(["crew", row.crew, row.id])}>
                  <span class="list-main"><b>{row.id}</b> <span class="muted small wrap">{row.note.replace(/^asks:\s*/, "") || row.title}</span></span>
                  <StateBadge task={row} />
                </a>
              </li>
            ))}
          </ul>
        </section>
      ) : null}
      {tasks.data && rows.length === 0 ? <EmptyState title="No matching tasks"><p>{crew.tasks === 0 ? "This crew has no tasks yet." : "No task of this crew matches the search and state."}</p></EmptyState> : null}
      {lanes.length > 0 ? (
        <div class="board" role="group" aria-label="Tasks by state" tabIndex={0}>
          {lanes.map(({ state, cards }) => (
            <section key={state} class="lane" aria-label={humanize(state)}>
              <h2>{humanize(state)} <a class="quiet" href={hrefTo(["crew"], { crew: crew.name, state })} aria-label={`${count(total(state, cards.length))} in the state ${humanize(state)}: show these alone`}>{count(total(state, cards.length))}</a></h2>
              {cards.map((row) => <TaskCard key={row.id} row={row} />)}
            </section>
          ))}
        </div>
      ) : null}
      {tasks.data?.nextCursor ? (
        limit < MAX_TASKS ? <button class="button center" onClick={() => setLimit(Math.min(MAX_TASKS, limit + PAGE_SIZE))}>Show more</button>
          : <p class="muted small">Showing the first {count(limit)} tasks. Search or filter by state to find others.</p>
      ) : null}
    </>
  );
}

/** A closed pool: why it is closed, until when, and a button that opens it. */
function ClosedPool({ crew, pool }: { crew: string; pool: PoolOut }) {
  return (
    <section class={`notice parked-banner ${pool.state === "blocked" ? "blocked" : "parked"}`} aria-label={`Pool ${pool.name}`}>
      <div>
        <p><b>Pool {pool.name} {humanize(pool.state)}{pool.parkedUntil !== null ? <> <Until at={pool.parkedUntil} /></> : null}</b></p>
        <p class="wrap small">because of {pool.reason}<NextStep pool={pool} /></p>
      </div>
      <div class="actions"><WakeButton path={`crews/${encodeURIComponent(crew)}/wake`} body={{ pool: pool.name }} /></div>
    </section>
  );
}

/** What opens a pool, unless its time says so. */
function NextStep({ pool }: { pool: PoolOut }) {
  if (pool.state === "blocked") return <>; a person opens it</>;
  if (pool.probe) return <>; {pool.probe} probes it</>;
  return pool.parkedUntil === null && pool.nextProbe !== null ? <>; next probe <Countdown until={pool.nextProbe} /></> : null;
}

function TaskCard({ row }: { row: TaskOut }) {
  const isActive = row.worker && row.state !== "complete" && row.state !== "exited" && row.state !== "watching";
  return (
    <a class="card task-card" href={hrefTo(["crew", row.crew, row.id])}>
      <b class="truncate">{row.id}</b>
      {row.title ? <span class="small muted">{row.title}</span> : null}
      {row.state === "exited" && row.outcome ? <StateBadge task={row} /> : null}
      {row.progress && isActive ? <span class="small truncate">{row.progress}</span> : null}
      {isActive ? (
        <span class="quiet small dot-separated">
          <span class="truncate">{row.worker}</span>
          {row.heartbeatAt !== null ? <span class={row.stale ? "overdue" : ""}><Ago at={row.heartbeatAt} /></span> : null}
        </span>
      ) : null}
      {row.warnings > 0 ? <span class="small muted">{plural(row.warnings, "context warning")}</span> : null}
      {row.errorTries > 0 ? <span class="small overdue">{plural(row.errorTries, "error")} so far</span> : null}
    </a>
  );
}

function StopButtons({ crew }: { crew: CrewOut }) {
  const denied = deniedReason("act");
  const hasEnded = !crew.conductor || ["complete", "exited", "exit_requested"].includes(crew.conductor.state);
  const stop = async (handOver: boolean) => {
    if (!confirm(handOver ? "Hand over to another conductor?" : "Stop this crew? Its workers hand off their tasks, and no more tasks are assigned.")) return;
    try {
      showToast((await post<ActionResult>(`crews/${encodeURIComponent(crew.name)}/stop`, { why: "requested in the dashboard", handOver })).note ?? "");
    } catch (error) {
      showError(error);
    }
  };
  return (
    <div class="actions">
      <button class="button" disabled={hasEnded || denied !== null} onClick={() => stop(true)}>Hand over</button>
      <button class="button danger" disabled={hasEnded || denied !== null} onClick={() => stop(false)}>
        <Icon name="stop" size={14} /> Stop
      </button>
      {denied ? <span class="disabled-reason">{denied}</span> : null}
    </div>
  );
}
