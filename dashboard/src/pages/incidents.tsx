import { useEffect, useState } from "preact/hooks";
import { ApiError, type Query, get, me } from "../api";
import { count, day, dollars, duration, total, humanize } from "../format";
import { useResource } from "../live/use_resource";
import { updateParams, hrefTo } from "../route";
import { EmptyState, LoadError, Loading } from "../ui/empty";
import { Ago, Badge, Select } from "../ui/parts";
import { showError } from "../ui/toast";
import type { IncidentOut, IncidentPage } from "../wire";

const PAGE_SIZE = 50;
const STATUSES = ["open", "recovered", "partial", "blocked", "failed", "succeeded"];
const FILTER_LABELS: Record<string, string> = { fingerprint: "group", rung: "rung", kind: "kind", tool: "tool", prompt: "recovery prompt", pattern: "prompt", since: "since", until: "until", session: "session" };

export default function Incidents({ params }: { params: URLSearchParams }) {
  const { all, ...named } = Object.fromEntries(params);
  // Incidents without failures are hidden by default.
  const filter: Query = { ...named, troubled: all || named["status"] ? null : true };
  const key = `incidents ${params}`;
  const [later, setLater] = useState<{ key: string; items: IncidentOut[]; cursor: string | null }>({ key, items: [], cursor: null });
  const first = useResource(key, (signal) => get<IncidentPage>("incidents", { ...filter, limit: PAGE_SIZE }, signal), () => true);
  useEffect(() => setLater({ key, items: [], cursor: null }), [key]);

  const cursor = later.items.length > 0 ? later.cursor : (first.data?.nextCursor ?? null);
  const loadMore = async () => {
    try {
      const page = await get<IncidentPage>("incidents", { ...filter, cursor, limit: PAGE_SIZE });
      setLater((old) => ({ key, items: [...old.items, ...page.items], cursor: page.nextCursor }));
    } catch (error) {
      if (error instanceof ApiError) showError(error);
    }
  };

  const firstItems = first.data?.items ?? [];
  const firstIds = new Set(firstItems.map((one) => one.id));
  const items = [...firstItems, ...later.items.filter((one) => !firstIds.has(one.id))];
  return (
    <section class="page">
      <header>
        <div class="page-head-text">
          <h1>Incidents</h1>
          {first.data ? <p class="muted small">{total(first.data.total)}</p> : null}
        </div>
      </header>
      <Filters params={params} />
      {first.error && !first.data ? (
        <LoadError error={first.error} retry={first.reload} />
      ) : !first.data ? (
        <Loading rows={8} />
      ) : items.length === 0 ? (
        <EmptyState title="No matching incidents">
          <p>{[...params].length > 0 ? "No incident in the journal matches these filters." : "An incident is one recovery. It appears here when an attempt fails."}</p>
          {[...params].length > 0 ? <a class="button" href={hrefTo(["incidents"])}>Show all incidents</a> : null}
        </EmptyState>
      ) : (
        <Table items={items} />
      )}
      {cursor !== null && items.length > 0 ? (
        <p class="center"><button class="button" onClick={loadMore}>Show more</button></p>
      ) : null}
    </section>
  );
}

function Filters({ params }: { params: URLSearchParams }) {
  const value = (name: string) => params.get(name) ?? "";
  const options = (label: string, names: readonly string[]) => [{ value: "", label }, ...names.map((name) => ({ value: name, label: name === "open" ? "in progress" : name }))];
  const chips = Object.keys(FILTER_LABELS).filter((name) => value(name));
  return (
    <div class="filters">
      <Select label="Status" value={value("status")} choices={options("All statuses", STATUSES)} pick={(status) => updateParams({ status })} />
      <Select label="Project" value={value("project")} choices={options("All projects", me.value?.projects ?? [])} pick={(project) => updateParams({ project })} />
      <Select label="Model" value={value("model")} choices={options("All models", me.value?.models ?? [])} pick={(model) => updateParams({ model })} />
      <button class="button" aria-pressed={value("all") !== ""} onClick={() => updateParams({ all: value("all") ? null : "1" })}>
        Include incidents without failures
      </button>
      {chips.map((name) => (
        <button key={name} class="button tiny" onClick={() => updateParams({ [name]: null })} aria-label={`Remove filter: ${FILTER_LABELS[name]}`}>
          {FILTER_LABELS[name]}: {name === "since" || name === "until" ? day(Number(value(name))) : humanize(value(name)).slice(0, 40)} ×
        </button>
      ))}
    </div>
  );
}

function Table({ items }: { items: IncidentOut[] }) {
  return (
    <div class="card scroll-x" tabIndex={0} role="region" aria-label="Incidents">
      <table class="table incidents">
        <thead>
          <tr>
            <th>Status</th>
            <th>Failure</th>
            <th>Session</th>
            <th>Ladder</th>
            <th class="number">Attempts</th>
            <th class="number">Duration</th>
            <th class="number">Cost</th>
            <th class="number">Started</th>
          </tr>
        </thead>
        <tbody>
          {items.map((one) => (
            <tr key={one.id}>
              <td class="status-cell"><Badge status={one.status} parkedUntil={one.parkedUntil} /></td>
              <td class="failure-cell">
                <a class="row-name" href={hrefTo(["incidents", one.id])}>{one.kind ? humanize(one.kind) : "no failure"}</a>
                <span class="quiet small truncate">{one.message}</span>
              </td>
              <td>
                {one.session ? <a href={hrefTo(["sessions", one.session])}>{one.session}</a> : <span class="quiet">none</span>}
                <span class="quiet small block">{one.project}</span>
              </td>
              <td>{one.ladder}<span class="quiet small block">{one.rung}</span></td>
              <td class="number">{count(one.attempts)}</td>
              <td class="number">{one.endedAt === null ? "in progress" : duration(one.endedAt - one.openedAt)}</td>
              <td class="number">{dollars(one.dollars)}</td>
              <td class="number quiet"><Ago at={one.openedAt} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
