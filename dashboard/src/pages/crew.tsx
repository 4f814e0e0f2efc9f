import { useRef, useState } from "preact/hooks";
import { get, mayNot, post } from "../api";
import { count, plural, words } from "../format";
import { usePoll } from "../live/poll";
import { useResource } from "../live/resource";
import { amend, link } from "../route";
import { Leader, STATES, StateBadge } from "../ui/crew";
import { Empty, Failed, Loading } from "../ui/empty";
import { Icon } from "../ui/icons";
import { useKeys } from "../ui/keys";
import { Ago, Select } from "../ui/parts";
import { complain, say } from "../ui/toast";
import type { CrewOut, Done, TaskOut, TaskPage } from "../wire";

const STEP = 100;
const MOST = 500;

export default function Crew({ params }: { params: URLSearchParams }) {
  const crews = useResource("crews", (signal) => get<CrewOut[]>("crews", {}, signal));
  usePoll(crews.again);
  if (!crews.data) return <section class="page">{crews.error ? <Failed error={crews.error} again={crews.again} /> : <Loading />}</section>;
  const crew = crews.data.find((one) => one.name === params.get("crew")) ?? crews.data[0];
  return (
    <section class="page">
      <header>
        <div class="page-head-text">
          <h1>Crew</h1>
          {crew ? <p class="muted small wrap">{crew.place}</p> : null}
        </div>
        {crew ? <Stop crew={crew} /> : null}
      </header>
      {crew ? <One key={crew.name} crew={crew} crews={crews.data} params={params} /> : <Nothing />}
    </section>
  );
}

function Nothing() {
  return (
    <Empty title="No crew connected">
      <p>A conductor assigns tasks to workers, monitors them and restarts them when they fail. Start a crew and connect it:</p>
      <pre>{"rung crew run plan.toml\nrung up --crew plan.db"}</pre>
    </Empty>
  );
}

function One({ crew, crews, params }: { crew: CrewOut; crews: CrewOut[]; params: URLSearchParams }) {
  const [limit, setLimit] = useState(STEP);
  const search = useRef<HTMLInputElement>(null);
  const filter = { crew: crew.name, state: params.get("state"), q: params.get("q"), limit };
  const tasks = useResource(JSON.stringify(filter), (signal) => get<TaskPage>("tasks", filter, signal));
  usePoll(tasks.again);
  useKeys({ "/": () => search.current?.focus() });
  const rows = tasks.data?.items ?? [];
  const person = rows.filter((row) => row.needsPerson);
  const rest = rows.filter((row) => !row.needsPerson);
  const lanes = STATES.filter((state) => rest.some((row) => row.state === state));
  return (
    <>
      {crew.trouble ? <p class="notice failed" role="alert">{crew.trouble}</p> : null}
      {Object.entries(crew.facts).map(([name, why]) => <p key={name} class="notice retrying">{name}: {why}</p>)}
      <div class="leaders">
        <Leader name="conductor" leader={crew.conductor} />
        <Leader name="watchdog" leader={crew.watchdog} />
        <span class="quiet small">{plural(crew.tasks, "task")}{crew.counts.complete ? `, ${count(crew.counts.complete)} complete` : ""}</span>
      </div>
      <div class="filters">
        <label class="search">
          <span class="unseen">Search tasks</span>
          <Icon name="search" size={16} />
          <input ref={search} class="input" type="search" placeholder="Search" value={params.get("q") ?? ""} onChange={(event) => amend({ q: event.currentTarget.value.trim() })}
            onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()} />
        </label>
        {crews.length > 1 ? <Select label="Crew" value={crew.name} choices={crews.map(({ name }) => ({ value: name, label: name }))} pick={(name) => amend({ crew: name })} /> : null}
        <Select label="State" value={params.get("state") ?? ""} pick={(state) => amend({ state })}
          choices={[{ value: "", label: "All states" }, ...STATES.map((state) => ({ value: state, label: `${words(state)} (${count(crew.counts[state] ?? 0)})` }))]} />
      </div>
      {tasks.error && !tasks.data ? <Failed error={tasks.error} again={tasks.again} /> : null}
      {!tasks.data && !tasks.error ? <Loading rows={6} /> : null}
      {person.length > 0 ? (
        <section class="card ask" aria-labelledby="needs-attention">
          <header><h2 id="needs-attention">Needs attention</h2></header>
          <ul class="inside list">
            {person.map((row) => (
              <li key={row.id}>
                <a class="list-link" href={link(["crew", row.crew, row.id])}>
                  <span class="list-main"><b>{row.id}</b> <span class="muted small wrap">{row.note.replace(/^asks:\s*/, "") || row.title}</span></span>
                  <StateBadge task={row} />
                </a>
              </li>
            ))}
          </ul>
        </section>
      ) : null}
      {tasks.data && rows.length === 0 ? <Empty title="No matching tasks"><p>{crew.tasks === 0 ? "This crew has no tasks yet." : "No task of this crew matches the search and state."}</p></Empty> : null}
      {lanes.length > 0 ? (
        <div class="board" role="group" aria-label="Tasks by state" tabIndex={0}>
          {lanes.map((state) => (
            <section key={state} class="lane" aria-label={words(state)}>
              <h2>{words(state)} <span class="quiet">{count(crew.counts[state] ?? 0)}</span></h2>
              {rest.filter((row) => row.state === state).map((row) => <Card key={row.id} row={row} />)}
            </section>
          ))}
        </div>
      ) : null}
      {tasks.data?.nextCursor ? (
        limit < MOST ? <button class="button center" onClick={() => setLimit(Math.min(MOST, limit + STEP))}>Show more</button>
          : <p class="muted small">Showing the first {count(limit)} tasks. Search or filter by state to find others.</p>
      ) : null}
    </>
  );
}

function Card({ row }: { row: TaskOut }) {
  const owned = row.worker && row.state !== "complete" && row.state !== "exited" && row.state !== "watching";
  return (
    <a class="card task-card" href={link(["crew", row.crew, row.id])}>
      <b class="cut">{row.id}</b>
      {row.title ? <span class="small muted">{row.title}</span> : null}
      {row.state === "exited" && row.outcome ? <StateBadge task={row} /> : null}
      {row.progress && owned ? <span class="small cut">{row.progress}</span> : null}
      {owned ? (
        <span class="quiet small dots">
          <span class="cut">{row.worker}</span>
          {row.heartbeatAt !== null ? <span class={row.stale ? "late" : ""}><Ago at={row.heartbeatAt} /></span> : null}
        </span>
      ) : null}
      {row.errorTries > 0 ? <span class="small late">{plural(row.errorTries, "error")} so far</span> : null}
    </a>
  );
}

function Stop({ crew }: { crew: CrewOut }) {
  const refused = mayNot("act");
  const over = !crew.conductor || ["complete", "exited", "exit_requested"].includes(crew.conductor.state);
  const stop = async (handOver: boolean) => {
    if (!confirm(handOver ? "Hand over to another conductor?" : "Stop this crew? Its workers hand off their tasks, and no more tasks are assigned.")) return;
    try {
      say((await post<Done>(`crews/${encodeURIComponent(crew.name)}/stop`, { why: "requested in the dashboard", handOver })).note ?? "");
    } catch (error) {
      complain(error);
    }
  };
  return (
    <div class="actions">
      <button class="button" disabled={over || refused !== null} onClick={() => stop(true)}>Hand over</button>
      <button class="button danger" disabled={over || refused !== null} onClick={() => stop(false)}>
        <Icon name="stop" size={14} /> Stop
      </button>
      {refused ? <span class="why-not">{refused}</span> : null}
    </div>
  );
}
