// Live session list: loads pages on scrolling, and reloads the first page after events.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, type Query, get } from "../api";
import type { SessionDetail, SessionOut, SessionPage } from "../wire";
import { RELOAD, subscribe } from "./bus";

const PAGE_SIZE = 100;
const REFRESH_DELAY_MS = 1_000;
const MAX_SINGLE_FETCHES = 8;

interface SessionList {
  rows: SessionOut[];
  total: number;
  cursor: string | null;
}

export interface Sessions extends SessionList {
  loading: boolean;
  error: ApiError | null;
  pendingChanges: number; // changes that are hidden while paused
  loadMore: () => void;
  reload: () => void;
}

/** Returns the sessions of a filter. Visible rows below the first page are refreshed one by one. */
export function useSessions(filter: Query, paused: boolean, visibleIds: () => readonly string[]): Sessions {
  const key = JSON.stringify(filter);
  const [list, setList] = useState<SessionList>({ rows: [], total: 0, cursor: null });
  const [state, setState] = useState<{ loading: boolean; error: ApiError | null }>({ loading: true, error: null });
  const [pendingChanges, setPendingChanges] = useState(0);
  const latest = useRef({ key, list, paused, visibleIds });
  latest.current = { key, list, paused, visibleIds };
  const isOutdated = () => latest.current.key !== key; // the filter has changed since the request
  const fetching = useRef(false);
  const changedIds = useRef(new Set<string>());

  const fail = (error: unknown) => {
    if (error instanceof DOMException) return;
    setState({ loading: false, error: error instanceof ApiError ? error : new ApiError(0, String(error)) });
  };

  const loadFirstPage = async (signal?: AbortSignal) => {
    const page = await get<SessionPage>("sessions", { ...filter, limit: PAGE_SIZE }, signal);
    if (isOutdated()) return page;
    setList((old) => mergeFirstPage(page, old));
    setState({ loading: false, error: null });
    return page;
  };

  const refresh = async () => {
    const changed = [...changedIds.current];
    changedIds.current.clear();
    setPendingChanges(0);
    const page = await loadFirstPage();
    const firstPageIds = new Set(page.items.map((row) => row.id));
    const visibleBelow = new Set(latest.current.visibleIds().filter((id) => !firstPageIds.has(id)));
    const toFetch = changed.filter((id) => visibleBelow.has(id)).slice(0, MAX_SINGLE_FETCHES);
    const rows = await Promise.all(toFetch.map((id) => get<SessionDetail>(`sessions/${encodeURIComponent(id)}`).catch(() => null)));
    const updates = new Map(rows.flatMap((row) => (row ? [[row.id, row as SessionOut] as const] : [])));
    if (updates.size > 0) setList((old) => ({ ...old, rows: old.rows.map((row) => updates.get(row.id) ?? row) }));
  };

  useEffect(() => {
    const controller = new AbortController();
    setState({ loading: true, error: null });
    setList({ rows: [], total: 0, cursor: null });
    changedIds.current.clear();
    setPendingChanges(0);
    loadFirstPage(controller.signal).catch(fail);
    return () => controller.abort();
  }, [key]);

  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | null = null;
    const scheduleRefresh = () => {
      if (timer !== null) return;
      timer = setTimeout(() => {
        timer = null;
        if (!latest.current.paused) refresh().catch(fail);
      }, REFRESH_DELAY_MS);
    };
    const unsubscribe = subscribe((messages) => {
      for (const { name, data } of messages) {
        const session = (data as { session?: string }).session;
        if (session) changedIds.current.add(session);
        else if (name !== RELOAD && name !== "act") continue;
        scheduleRefresh();
      }
      if (latest.current.paused) setPendingChanges(changedIds.current.size);
    });
    if (!paused && changedIds.current.size > 0) scheduleRefresh();
    return () => {
      unsubscribe();
      if (timer !== null) clearTimeout(timer);
    };
  }, [key, paused]);

  const loadMore = () => {
    const { cursor } = latest.current.list;
    if (cursor === null || fetching.current) return;
    fetching.current = true;
    get<SessionPage>("sessions", { ...filter, cursor, limit: PAGE_SIZE })
      .then((page) => {
        if (isOutdated()) return;
        setList((old) => ({
          rows: uniqueById([...old.rows, ...page.items]),
          total: page.total,
          cursor: page.nextCursor,
        }));
      })
      .catch(fail)
      .finally(() => (fetching.current = false));
  };

  return { ...list, ...state, pendingChanges, loadMore, reload: () => void refresh().catch(fail) };
}

/** Replaces the first page and keeps the rows loaded after it. */
function mergeFirstPage(page: SessionPage, old: SessionList): SessionList {
  if (old.rows.length <= PAGE_SIZE || page.nextCursor === null) {
    return { rows: page.items, total: page.total, cursor: page.nextCursor };
  }
  return { rows: uniqueById([...page.items, ...old.rows.slice(PAGE_SIZE)]), total: page.total, cursor: old.cursor };
}

function uniqueById(rows: SessionOut[]): SessionOut[] {
  const seen = new Set<string>();
  return rows.filter((row) => !seen.has(row.id) && seen.add(row.id));
}
