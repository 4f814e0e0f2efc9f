// Executors of a fleet, grouped by host.
import { count, duration, plural } from "../format";
import type { ExecutorOut } from "../wire";
import { Since } from "./parts";

const TONES: Record<string, string> = { live: "recovered", late: "retrying", dead: "failed", draining: "parked" };
const SHORT_ID = 8;

/** A dead executor is dead, whatever it was told; a late one that drains is both. */
function shownState(executor: ExecutorOut): { text: string; tone: string } {
  if (executor.health === "dead" || executor.state === "live") return { text: executor.health, tone: TONES[executor.health] ?? "succeeded" };
  return { text: executor.health === "late" ? `${executor.state}, late` : executor.state, tone: TONES[executor.state] ?? "succeeded" };
}

export function Executors({ executors }: { executors: ExecutorOut[] }) {
  const hosts = [...new Set(executors.map((one) => one.host))].sort();
  return (
    <section class="card executors" aria-label="Executors">
      <header><h2>Executors</h2><span class="quiet small">dead when no heartbeat came for a whole lease</span></header>
      <div class="card-body scroll-x" tabIndex={0} role="region" aria-label="Executors">
        <table class="table">
          <thead>
            <tr><th>Executor</th><th>State</th><th class="number">Heartbeat</th><th>Version</th><th>Engine</th><th class="number">Runs</th><th class="number">Requests</th><th>Queues</th><th class="number">Up for</th></tr>
          </thead>
          {hosts.map((host) => <Host key={host} name={host} executors={executors.filter((one) => one.host === host)} />)}
        </table>
      </div>
    </section>
  );
}

function Host({ name, executors }: { name: string; executors: ExecutorOut[] }) {
  return (
    <tbody>
      <tr class="host-row">
        <th colSpan={9} scope="rowgroup">{name} <span class="quiet small">{plural(executors.length, "executor")}</span></th>
      </tr>
      {executors.map((one) => <Row key={one.id} executor={one} />)}
    </tbody>
  );
}

function Row({ executor }: { executor: ExecutorOut }) {
  const { text, tone } = shownState(executor);
  return (
    <tr>
      <td>
        <span class="row-name">{executor.role}</span> <code class="quiet small" title={executor.id}>{executor.id.slice(0, SHORT_ID)}</code>
        <div class="muted small">pid {executor.pid}</div>
      </td>
      <td><span class={`badge ${tone}`}>{text}</span></td>
      <td class="number nowrap" title={`Lease of ${duration(executor.lease)}`}>{duration(Math.floor(executor.age))} ago</td>
      <td>{executor.version}</td>
      <td>{executor.engine}</td>
      <td class="number">{count(executor.runs)}</td>
      <td class="number">{count(executor.requests)}</td>
      <td class="small wrap">{executor.queues.join(", ")}</td>
      <td class="number nowrap">{executor.health === "dead" ? "–" : <Since at={executor.startedAt} />}</td>
    </tr>
  );
}
