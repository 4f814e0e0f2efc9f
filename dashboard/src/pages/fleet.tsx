import { get } from "../api";
import { count, duration, plural } from "../format";
import { usePoll } from "../live/use_poll";
import { useResource } from "../live/use_resource";
import { Command } from "../ui/command";
import { EmptyState, LoadError, Loading } from "../ui/empty";
import { Executors } from "../ui/executors";
import { Since } from "../ui/parts";
import type { ExpiringLeaseOut, FleetOut, OpenRunsOut, QueueOut, SharedLimitOut } from "../wire";

const PREPARE = "rung fleet init --url postgresql://OWNER@HOST/DATABASE --role rung_fleet\nexport RUNG_JOURNAL=postgresql://rung_fleet@HOST/DATABASE\nrung fleet worker --import MODULE";

export default function Fleet() {
  const fleet = useResource("fleet", (signal) => get<FleetOut>("fleet", {}, signal));
  usePoll(fleet.reload);
  if (!fleet.data) return <section class="page">{fleet.error ? <LoadError error={fleet.error} retry={fleet.reload} /> : <Loading />}</section>;
  const { executors, runs, leases, queues, versions, limits } = fleet.data;
  const live = executors.filter((one) => one.health !== "dead");
  const hosts = new Set(live.map((one) => one.host)).size;
  return (
    <section class="page fleet">
      <header>
        <div class="page-head-text">
          <h1>Fleet</h1>
          {executors.length > 0 ? <p class="muted small">{plural(live.length, "live executor")} on {plural(hosts, "host")}</p> : null}
        </div>
      </header>
      {versions.length > 1 ? (
        <p class="notice retrying">Versions side by side: {versions.map((one) => `${one.version} (${plural(one.executors, "executor")})`).join(", ")}</p>
      ) : null}
      {executors.length > 0 ? <Executors executors={executors} /> : <NoFleet />}
      {executors.length > 0 && !live.some((one) => one.role === "worker") ? (
        <p class="muted small">No worker takes submitted runs. Start one: <code>rung fleet worker --import MODULE</code></p>
      ) : null}
      {queues.length > 0 ? <Queues queues={queues} /> : null}
      {leases.length > 0 ? <Leases leases={leases} /> : null}
      {runs.length > 0 ? <Runs runs={runs} /> : null}
      {limits.length > 0 ? <Limits limits={limits} /> : null}
    </section>
  );
}

function NoFleet() {
  return (
    <EmptyState title="No fleet">
      <p>Workers, gateways and services on several machines form a fleet when they share one PostgreSQL journal. Prepare the database and start a worker:</p>
      <Command text={PREPARE} />
    </EmptyState>
  );
}

function Queues({ queues }: { queues: QueueOut[] }) {
  return (
    <section class="card" aria-label="Queues">
      <header><h2>Queues</h2><span class="quiet small">runs that wait for a worker</span></header>
      <div class="card-body scroll-x" tabIndex={0} role="region" aria-label="Queues">
        <table class="table">
          <thead><tr><th>Queue</th><th>Engine</th><th class="number">Waiting</th><th class="number">Lag</th></tr></thead>
          <tbody>
            {queues.map((one) => (
              <tr key={`${one.engine}/${one.name}`}>
                <td class="row-name">{one.name}</td><td>{one.engine}</td><td class="number">{count(one.waiting)}</td><td class="number">{duration(Math.floor(one.lag))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Leases({ leases }: { leases: ExpiringLeaseOut[] }) {
  return (
    <section class="card" aria-label="Leases">
      <header><h2>Leases</h2><span class="quiet small">not renewed in time; another worker takes the run when its lease has expired</span></header>
      <div class="card-body scroll-x" tabIndex={0} role="region" aria-label="Leases">
        <table class="table">
          <thead><tr><th>Run</th><th>Task</th><th>Owner</th><th class="number">Expires</th></tr></thead>
          <tbody>
            {leases.map((one) => (
              <tr key={one.run}>
                <td class="row-name nowrap">{one.run}</td>
                <td>{one.task || "recovery"}</td>
                <td>{one.host} <span class="quiet small">pid {one.pid}</span></td>
                <td class="number">{one.expiresIn < 0 ? <span class="badge failed">expired {duration(Math.floor(-one.expiresIn))} ago</span> : `in ${duration(Math.ceil(one.expiresIn))}`}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Runs({ runs }: { runs: OpenRunsOut[] }) {
  return (
    <section class="card" aria-label="Open runs">
      <header><h2>Open runs</h2><span class="quiet small">by task and owner</span></header>
      <div class="card-body scroll-x" tabIndex={0} role="region" aria-label="Open runs">
        <table class="table">
          <thead><tr><th>Task</th><th>Owner</th><th class="number">Open</th><th class="number">Oldest</th></tr></thead>
          <tbody>
            {runs.map((one) => (
              <tr key={`${one.task}/${one.host}/${one.pid}`}>
                <td class="row-name">{one.task || "recovery"}</td>
                <td>{one.host ? <>{one.host} <span class="quiet small">pid {one.pid}</span></> : <span class="muted">nobody</span>}</td>
                <td class="number">{count(one.open)}</td>
                <td class="number"><Since at={one.oldestAt} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Limits({ limits }: { limits: SharedLimitOut[] }) {
  return (
    <section class="card" aria-label="Shared limits">
      <header><h2>Shared limits</h2><span class="quiet small">used by all, and leased in slices</span></header>
      <div class="card-body scroll-x" tabIndex={0} role="region" aria-label="Shared limits">
        <table class="table">
          <thead><tr><th>Limit</th><th>Fleet</th><th class="number">Used</th><th class="number">In slices</th><th class="number">Holders</th></tr></thead>
          <tbody>
            {limits.map((one) => (
              <tr key={`${one.fleet}/${one.name}`}>
                <td class="row-name">{one.name}</td><td>{one.fleet}</td><td class="number">{one.used.toFixed(2)}</td><td class="number">{one.out.toFixed(2)}</td><td class="number">{count(one.holders)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
