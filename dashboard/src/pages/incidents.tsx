import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, type Query, get, me } from "../api";
import { count, day, dollars, duration, plural, total, humanize } from "../format";
import { useResource } from "../live/use_resource";
import { updateParams, hrefTo, navigate } from "../route";
import { Command, tryCommand } from "../ui/command";
import { EmptyState, LoadError, Loading } from "../ui/empty";
import { Ago, Badge, Select } from "../ui/parts";
import { Search } from "../ui/search";
import { useKeys } from "../ui/shortcuts";
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
  const search = useRef<HTMLInputElement>(null);
  const [selected, setSelected] = useState<string | null>(null);
  const index = Math.max(0, items.findIndex((one) => one.id === selected));
  const current = items[index];
  // Keys move the focus to the link of a row, which screen readers announce.
  const select = (to: number) => {
    const row = items[Math.max(0, Math.min(items.length - 1, to))];
    if (!row) return;
    setSelected(row.id);
    const link = document.getElementById(rowId(row))?.querySelector<HTMLElement>(".row-name");
    link?.focus({ preventScroll: true });
    link?.scrollIntoView({ block: "nearest" });
  };
  useKeys({
    j: () => select(index + 1), k: () => select(index - 1),
    Enter: (event) => {
      if (event.target instanceof HTMLButtonElement || event.target instanceof HTMLAnchorElement) event.target.click();
      else if (current) navigate(["incidents", current.id]);
    },
    "/": () => search.current?.focus(),
  });
  return (
    <section class="page">
      <header>
        <div class="page-head-text">
          <h1>Incidents</h1>
          {first.data ? <p class="muted small">{total(first.data.total)}{filter["troubled"] ? " with a failure" : ""}</p> : null}
        </div>
      </header>
      <Filters params={params} search={search} />
      {first.error && !first.data ? (
        <LoadError error={first.error} retry={first.reload} />
      ) : !first.data ? (
        <Loading rows={8} />
      ) : items.length === 0 ? (
        <NoIncidents filtered={[...params].length > 0} />
      ) : (
        <Table items={items} chosen={current?.id ?? null} select={setSelected} />
      )}
      {cursor !== null && items.length > 0 ? (
        <p class="center"><button class="button" onClick={loadMore}>Show more</button></p>
      ) : null}
    </section>
  );
}

function NoIncidents({ filtered }: { filtered: boolean }) {
  if (filtered) {
    return (
      <EmptyState title="No matching incidents">
        <p>No incident in the journal matches these filters.</p>
        <a class="button" href={hrefTo(["incidents"])}>Show all incidents</a>
      </EmptyState>
    );
  }
  return (
    <EmptyState title="No incidents yet">
      <p>An incident is one recovery. It appears here when an attempt fails. This command fails once and recovers:</p>
      <Command text={tryCommand()} />
    </EmptyState>
  );
}

function Filters({ params, search }: { params: URLSearchParams; search: { current: HTMLInputElement | null } }) {
  const value = (name: string) => params.get(name) ?? "";
  const options = (label: string, names: readonly string[]) => [{ value: "", label }, ...names.map((name) => ({ value: name, label: name === "open" ? "in progress" : name }))];
  const chips = Object.keys(FILTER_LABELS).filter((name) => value(name));
  return (
    <div class="filters">
      <Search label="Search incidents" value={value("q")} input={search} />
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

function rowId(incident: IncidentOut): string {
  return `incident-${incident.id}`;
}

function Table({ items, chosen, select }: { items: IncidentOut[]; chosen: string | null; select: (id: string) => void }) {
  const open = (event: MouseEvent, id: string) => {
    const isLink = event.target instanceof Element && event.target.closest("a") !== null;
    const isSelectingText = getSelection()?.isCollapsed === false;
    if (!isLink && !isSelectingText) navigate(["incidents", id]);
  };
  return (
    <div class="card scroll-x incidents-card" tabIndex={0} role="region" aria-label="Incidents">
      <table class="table incidents">
        <thead>
          <tr>
            <th>Status</th>
            <th>Failure</th>
            <th>Session</th>
            <th class="ladder-cell">Ladder</th>
            <th class="number attempts-cell">Attempts</th>
            <th class="number duration-cell">Duration</th>
            <th class="number">Cost</th>
            <th class="number">Started</th>
          </tr>
        </thead>
        <tbody>
          {items.map((one) => (
            <tr key={one.id} id={rowId(one)} class={one.id === chosen ? "chosen" : ""} onClick={(event) => open(event, one.id)} onFocusIn={() => select(one.id)}>
              <td class="status-cell"><Badge status={one.status} parkedUntil={one.parkedUntil} /></td>
              <td class="failure-cell">
                <a class="row-name" href={hrefTo(["incidents", one.id])}>{one.kind ? humanize(one.kind) : "no failure"}</a>
                <span class="quiet small truncate">{one.message}</span>
              </td>
              <td class="session-cell">
                {one.session ? <a href={hrefTo(["sessions", one.session])}>{one.session}</a> : <span class="quiet">none</span>}
                <span class="quiet small block">{one.project}</span>
              </td>
              <td class="ladder-cell">{one.ladder}<span class="quiet small block">{one.rung}</span></td>
              <td class="number attempts-cell"><a href={hrefTo(["incidents", one.id])} aria-label={`${plural(one.attempts, "attempt")}: open the incident`}>{count(one.attempts)}</a></td>
              <td class="number duration-cell">{one.endedAt === null ? "in progress" : duration(one.endedAt - one.openedAt)}</td>
              <td class="number cost-cell">{dollars(one.dollars)}</td>
              <td class="number quiet started-cell"><Ago at={one.openedAt} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
