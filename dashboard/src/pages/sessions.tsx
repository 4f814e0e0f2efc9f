import { memo } from "preact/compat";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { me } from "../api";
import { count, dollars, total, humanize, nextAttempt } from "../format";
import { useSessions } from "../live/use_sessions";
import { updateParams, navigate, hrefTo } from "../route";
import { EscalateDialog } from "../ui/escalate";
import { WaysIn } from "../ui/command";
import { EmptyState, LoadError, Loading } from "../ui/empty";
import { Guide, isGuideOpen } from "../ui/guide";
import { Icon } from "../ui/icons";
import { Search } from "../ui/search";
import { useKeys } from "../ui/shortcuts";
import { Ago, Badge, Countdown, Model, Select, Tabs } from "../ui/parts";
import { Until } from "../ui/parked";
import { RetryDialog } from "../ui/retry";
import type { SessionOut } from "../wire";

const STATUSES = ["active", "waiting", "recovered", "succeeded", "partial", "blocked", "failed"];
const OVERSCAN = 6;

const COLUMNS = [
  { name: "status", label: "Status", sort: "" },
  { name: "session", label: "Session", sort: "" },
  { name: "model", label: "Model", sort: "" },
  { name: "activity", label: "Activity", sort: "" },
  { name: "attempts", label: "Attempts", sort: "attempts" },
  { name: "cost", label: "Cost", sort: "cost" },
  { name: "updated", label: "Updated", sort: "touched" },
] as const;

export default function Sessions({ params }: { params: URLSearchParams }) {
  const [paused, setPaused] = useState(false);
  const [selected, setSelected] = useState(0);
  const [dialog, setDialog] = useState<{ what: "retry" | "escalate"; id: string } | null>(null);
  const search = useRef<HTMLInputElement>(null);
  const visibleIds = useRef<readonly string[]>([]);
  const filter = {
    status: params.get("status"), project: params.get("project"), model: params.get("model"),
    q: params.get("q"), sort: params.get("sort"),
  };
  const list = useSessions(filter, paused, () => visibleIds.current);
  const current = list.rows[selected];

  const move = (by: number) => setSelected((n) => Math.max(0, Math.min(list.rows.length - 1, n + by)));
  useKeys({
    j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1),
    PageDown: () => move(10), PageUp: () => move(-10), Home: () => setSelected(0), End: () => setSelected(list.rows.length - 1),
    Enter: (event) => {
      if (event.target instanceof HTMLButtonElement || event.target instanceof HTMLAnchorElement) event.target.click();
      else if (current) navigate(["sessions", current.id]);
    },
    "/": () => search.current?.focus(),
    p: () => setPaused((on) => !on),
    r: () => current && setDialog({ what: "retry", id: current.id }),
    e: () => current && setDialog({ what: "escalate", id: current.id }),
  });
  useEffect(() => setSelected(0), [JSON.stringify(filter)]);

  const filtered = Object.entries(filter).some(([name, value]) => value && name !== "sort");
  return (
    <section class="page sessions-page">
      <header>
        <div class="page-head-text">
          <h1>Sessions</h1>
          <p class="muted small">
            {list.loading && list.rows.length === 0 ? "Loading" : `${total(list.total)} ${filtered ? "matching" : "total"}`}
          </p>
        </div>
        <PauseButton paused={paused} pendingChanges={list.pendingChanges} toggle={() => setPaused((on) => !on)} />
      </header>
      <Guide isEmpty={!filtered && !list.loading && list.error === null && list.rows.length === 0} />
      <Filters params={params} search={search} />
      {list.error && list.rows.length === 0 ? (
        <LoadError error={list.error} retry={list.reload} />
      ) : list.loading && list.rows.length === 0 ? (
        <Loading rows={8} />
      ) : list.rows.length === 0 ? (
        <NoSessions filtered={filtered} />
      ) : (
        <SessionGrid
          rows={list.rows}
          total={list.total}
          selected={selected}
          sort={filter.sort ?? "touched"}
          select={setSelected}
          loadMore={list.loadMore}
          onVisible={(ids) => (visibleIds.current = ids)}
        />
      )}
      {dialog?.what === "retry" ? <RetryDialog session={dialog.id} close={() => setDialog(null)} /> : null}
      {dialog?.what === "escalate" ? <EscalateDialog session={dialog.id} close={() => setDialog(null)} /> : null}
    </section>
  );
}

function PauseButton({ paused, pendingChanges, toggle }: { paused: boolean; pendingChanges: number; toggle: () => void }) {
  return (
    <button class="button" aria-pressed={paused} onClick={toggle} title="p">
      <Icon name={paused ? "play" : "pause"} size={15} />
      {paused ? (pendingChanges ? `Paused, ${count(pendingChanges)} changed` : "Paused") : "Pause"}
    </button>
  );
}

function Filters({ params, search }: { params: URLSearchParams; search: { current: HTMLInputElement | null } }) {
  const options = (label: string, names: readonly string[]) => [{ value: "", label }, ...names.map((name) => ({ value: name, label: name || "(none)" }))];
  const value = (name: string) => params.get(name) ?? "";
  return (
    <div class="filters">
      <Search label="Search sessions" value={value("q")} input={search} />
      <Select label="Project" value={value("project")} choices={options("All projects", me.value?.projects ?? [])} pick={(project) => updateParams({ project })} />
      <Select label="Model" value={value("model")} choices={options("All models", me.value?.models ?? [])} pick={(model) => updateParams({ model })} />
      <Tabs label="Status" value={value("status")} pick={(status) => updateParams({ status })}
        choices={[{ value: "", label: "All" }, ...STATUSES.map((name) => ({ value: name, label: name === "waiting" ? "needs input" : name }))]} />
    </div>
  );
}

interface SessionGridProps {
  rows: SessionOut[];
  total: number;
  selected: number;
  sort: string;
  select: (index: number) => void;
  loadMore: () => void;
  onVisible: (ids: readonly string[]) => void;
}

/** Virtualised grid: only visible rows are in the document. */
function SessionGrid({ rows, total, selected, sort, select, loadMore, onVisible }: SessionGridProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800, row: 58 });

  const measure = useCallback(() => {
    const element = scroller.current;
    if (!element) return;
    const row = parseFloat(getComputedStyle(element).getPropertyValue("--row")) || 58;
    setView((old) => {
      const next = { top: element.scrollTop, height: element.clientHeight, row };
      return old.top === next.top && old.height === next.height && old.row === next.row ? old : next;
    });
  }, []);

  useLayoutEffect(() => {
    measure();
    const observer = new ResizeObserver(measure);
    if (scroller.current) observer.observe(scroller.current);
    return () => observer.disconnect();
  }, []);

  const first = Math.max(0, Math.floor(view.top / view.row) - OVERSCAN);
  const last = Math.min(rows.length, Math.ceil((view.top + view.height) / view.row) + OVERSCAN);
  const visible = rows.slice(first, last);
  onVisible(visible.map((row) => row.id));
  useEffect(() => {
    if (last > rows.length - 30) loadMore();
  }, [last, rows.length]);

  // Scroll to the selected row, and move the focus if it is inside the grid.
  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const top = selected * view.row;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + view.row > element.scrollTop + element.clientHeight) element.scrollTop = top + view.row - element.clientHeight;
    if (element.contains(document.activeElement)) element.querySelector<HTMLElement>(`[data-index="${selected}"]`)?.focus({ preventScroll: true });
  }, [selected]);

  return (
    <div class="grid card" role="grid" aria-label="Sessions" aria-rowcount={total + 1}>
      <div class="grid-head" role="row" aria-rowindex={1}>
        {COLUMNS.map((column) => (
          <ColumnHeader key={column.name} column={column} sort={sort} />
        ))}
      </div>
      <div class="grid-body" role="rowgroup" ref={scroller} onScroll={measure}>
        <div class="grid-space" role="presentation" style={{ height: `${rows.length * view.row}px` }}>
          <div class="grid-window" role="presentation" style={{ transform: `translateY(${first * view.row}px)` }}>
            {visible.map((row, n) => (
              <Row key={row.id} row={row} index={first + n} chosen={first + n === selected} select={select} />
            ))}
          </div>
        </div>
      </div>
    </div>
  );
}

/** Column header; sorting is always descending. */
function ColumnHeader({ column, sort }: { column: (typeof COLUMNS)[number]; sort: string }) {
  if (!column.sort) {
    return (
      <span role="columnheader" class={`col-${column.name}`}>
        {column.label}
      </span>
    );
  }
  const chosen = sort === column.sort;
  return (
    <span role="columnheader" class={`col-${column.name}`} aria-sort={chosen ? "descending" : "none"}>
      <button onClick={() => updateParams({ sort: column.sort === "touched" ? null : column.sort })}>
        {column.label}
        <span aria-hidden="true" class="sort-mark">{chosen ? "↓" : ""}</span>
      </button>
    </span>
  );
}

interface RowProps {
  row: SessionOut;
  index: number;
  chosen: boolean;
  select: (index: number) => void;
}

const Row = memo(function Row({ row, index, chosen, select }: RowProps) {
  return (
    <div class={`grid-row ${chosen ? "chosen" : ""}`} role="row" aria-rowindex={index + 2} aria-selected={chosen} tabIndex={chosen ? 0 : -1}
      data-index={index} onFocus={() => select(index)} onClick={() => navigate(["sessions", row.id])}>
      <span role="gridcell" class="col-status">
        <Badge status={row.status} />
      </span>
      <span role="gridcell" class="col-session">
        <a class="truncate row-name" href={hrefTo(["sessions", row.id])} tabIndex={-1} onClick={(event) => event.stopPropagation()}>
          {row.id}
        </a>
        <span class="truncate quiet small">{[row.project, row.agent].filter(Boolean).join(" · ") || "no project"}</span>
      </span>
      <span role="gridcell" class="col-model">
        <Model model={row.model} former={row.formerModel} />
      </span>
      <span role="gridcell" class="col-activity">
        <Activity row={row} />
      </span>
      <span role="gridcell" class="col-attempts number">
        {count(row.attempts)}
        {row.failures ? <span class="quiet small"> · {count(row.failures)} failed</span> : null}
      </span>
      <span role="gridcell" class="col-cost number">{dollars(row.dollars)}</span>
      <span role="gridcell" class="col-updated number quiet">
        <Ago at={row.touchedAt} />
      </span>
    </div>
  );
}, (before, after) => before.row === after.row && before.index === after.index && before.chosen === after.chosen);

function Activity({ row }: { row: SessionOut }) {
  const failure = row.lastFailure;
  return (
    <>
      {row.retry ? (
        <span class="truncate retrying next-attempt">
          {nextAttempt(row.retry)} <Countdown until={row.retry.until} />
        </span>
      ) : null}
      {row.parkedUntil !== null ? <span class="truncate parked next-attempt"><Until at={row.parkedUntil} /></span> : null}
      {failure ? (
        <span class="truncate small last-failure" title={failure.message}>
          <span class={`kind ${row.status === "recovered" || row.status === "succeeded" ? "past" : ""}`}>{humanize(failure.kind)}</span>{" "}
          <span class="muted">{failure.message}</span>
        </span>
      ) : row.retry ? null : (
        <span class="quiet small">no failure</span>
      )}
    </>
  );
}

function NoSessions({ filtered }: { filtered: boolean }) {
  if (filtered) {
    return (
      <EmptyState title="No matching sessions">
        <p>No session in the journal matches the search and filters.</p>
        <button class="button" onClick={() => updateParams({ status: null, project: null, model: null, q: null })}>
          Show all sessions
        </button>
      </EmptyState>
    );
  }
  return (
    <EmptyState title="No sessions yet">
      <p>A session appears here when an agent runs under Rung and writes to this journal.</p>
      {isGuideOpen.value ? null : <WaysIn />}
    </EmptyState>
  );
}
