// Providers: what the running gateways say about their upstreams and keys.
import { get } from "../api";
import { count, dollars, duration, humanize } from "../format";
import { usePoll } from "../live/use_poll";
import { useResource } from "../live/use_resource";
import type { ProviderKeyOut, ProviderOut } from "../wire";
import { Ago, Countdown } from "./parts";

const POLL_MS = 10_000; // as often as gateways report
const TONES: Record<string, string> = { ok: "recovered", usable: "recovered", failing: "failed", dead: "failed", limited: "parked", exhausted: "parked" };

const tone = (state: string) => TONES[state] ?? "succeeded";
const sum = (numbers: Record<string, number>) => Object.values(numbers).reduce((total, one) => total + one, 0);
const counts = (numbers: Record<string, number>, label = (name: string) => name) => Object.entries(numbers).sort((one, other) => other[1] - one[1]).map(([name, number]) => `${label(name)} ${count(number)}`).join(", ");

/** Shows nothing while no gateway reports. */
export function Providers() {
  const providers = useResource("providers", (signal) => get<ProviderOut[]>("providers", {}, signal));
  usePoll(providers.reload, POLL_MS);
  if (!providers.data?.length) return null;
  return (
    <section class="card full-width providers">
      <header><h2>Providers</h2><span class="quiet small">since each gateway was started</span></header>
      <div class="card-body scroll-x" tabIndex={0} role="region" aria-label="Providers">
        <table class="table">
          <thead>
            <tr><th>Provider</th><th>State</th><th>Keys</th><th class="number">Calls</th><th>Failures</th><th class="number">Median</th><th>Translated</th><th class="number">Cost</th></tr>
          </thead>
          <tbody>{providers.data.map((one) => <Row key={`${one.gateway}/${one.name}`} provider={one} />)}</tbody>
        </table>
      </div>
    </section>
  );
}

function Row({ provider }: { provider: ProviderOut }) {
  return (
    <tr>
      <td>
        <span class="row-name">{provider.name}</span> <span class="quiet small">{provider.type}</span>
        <div class="muted small">{provider.host}: {provider.wires.join(", ")}</div>
      </td>
      <td>
        <span class={`badge ${tone(provider.state)}`}>{provider.state}</span>
        {provider.circuits.map((circuit) => <div key={circuit.model} class="muted small">circuit {circuit.model} {humanize(circuit.state)}</div>)}
      </td>
      <td>{provider.keys.map((key) => <Key key={key.name} state={key} />)}</td>
      <td class="number">{count(provider.successes + sum(provider.failures))}</td>
      <td class="small">
        {counts(provider.failures, humanize)}
        {provider.lastError ? <div class="muted small truncate" title={provider.lastError.message}><Ago at={provider.lastError.at} />: {provider.lastError.message}</div> : null}
      </td>
      <td class="number">{duration(provider.latencyP50)}</td>
      <td class="small">
        {provider.translated.map((one) => <div key={`${one.client} ${one.upstream}`}>{one.client} to {one.upstream} {count(one.calls)}</div>)}
        {sum(provider.dropped) > 0 ? <div class="muted small">dropped: {counts(provider.dropped)}</div> : null}
      </td>
      <td class="number">{dollars(provider.dollars)}</td>
    </tr>
  );
}

function Key({ state: key }: { state: ProviderKeyOut }) {
  return (
    <div class="small nowrap">
      {key.name} <span class={`badge ${tone(key.state)}`}>{key.state}</span>
      {key.until ? <span class="quiet"> usable <Countdown until={key.until} />{key.models.length ? ` (${key.models.join(", ")})` : ""}</span> : null}
    </div>
  );
}
