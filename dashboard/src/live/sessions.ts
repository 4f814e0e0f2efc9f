// The live list: pages fetched as the reader scrolls, its head asked for again when something happened.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, type Query, get } from "../api";
import type { SessionDetail, SessionOut, SessionPage } from "../wire";
import { RELOAD, listen } from "./bus";

const PAGE = 100;
const APART_MS = 1_000;
const MOST_SINGLE = 8;

interface List {
  rows: SessionOut[];
  total: number;
  cursor: string | null;
}

export interface Sessions extends List {
  loading: boolean;
  error: ApiError | null;
  held: number; // changes not shown while paused
  more: () => void;
  again: () => void;
}

/** The sessions a filter asks for. `shown` names the rows on the screen: only those below the head are asked for singly. */
export function useSessions(filter: Query, paused: boolean, shown: () => readonly string[]): Sessions {
  const key = JSON.stringify(filter);
  const [list, setList] = useState<List>({ rows: [], total: 0, cursor: null });
  const [state, setState] = useState<{ loading: boolean; error: ApiError | null }>({ loading: true, error: null });
  const [held, setHeld] = useState(0);
  const latest = useRef({ list, paused, shown });
  latest.current = { list, paused, shown };
  const fetching = useRef(false);
  const dirty = useRef(new Set<string>());

  const fail = (error: unknown) => {
    if (error instanceof DOMException) return;
    setState({ loading: false, error: error instanceof ApiError ? error : new ApiError(0, String(error)) });
  };

  const head = async (signal?: AbortSignal) => {
    const page = await get<SessionPage>("sessions", { ...filter, limit: PAGE }, signal);
    setList((old) => joined(page, old));
    setState({ loading: false, error: null });
    return page;
  };

  const refresh = async () => {
    const touched = [...dirty.current];
    dirty.current.clear();
    setHeld(0);
    const page = await head();
    const fresh = new Set(page.items.map((row) => row.id));
    const below = new Set(latest.current.shown().filter((id) => !fresh.has(id)));
    const single = touched.filter((id) => below.has(id)).slice(0, MOST_SINGLE);
    const rows = await Promise.all(single.map((id) => get<SessionDetail>(`sessions/${encodeURIComponent(id)}`).catch(() => null)));
    const changed = new Map(rows.flatMap((row) => (row ? [[row.id, row as SessionOut] as const] : [])));
    if (changed.size > 0) setList((old) => ({ ...old, rows: old.rows.map((row) => changed.get(row.id) ?? row) }));
  };

  useEffect(() => {
    const stop = new AbortController();
    setState({ loading: true, error: null });
    setList({ rows: [], total: 0, cursor: null });
    dirty.current.clear();
    setHeld(0);
    head(stop.signal).catch(fail);
    return () => stop.abort();
  }, [key]);

  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | null = null;
    const soon = () => {
      if (timer !== null) return;
      timer = setTimeout(() => {
        timer = null;
        if (!latest.current.paused) refresh().catch(fail);
      }, APART_MS);
    };
    const stop = listen((messages) => {
      for (const { name, data } of messages) {
        const session = (data as { session?: string }).session;
        if (session) dirty.current.add(session);
        else if (name !== RELOAD && name !== "act") continue;
        soon();
      }
      if (latest.current.paused) setHeld(dirty.current.size);
    });
    if (!paused && dirty.current.size > 0) soon();
    return () => {
      stop();
      if (timer !== null) clearTimeout(timer);
    };
  }, [key, paused]);

  const more = () => {
    const { cursor } = latest.current.list;
    if (cursor === null || fetching.current) return;
    fetching.current = true;
    get<SessionPage>("sessions", { ...filter, cursor, limit: PAGE })
      .then((page) => {
        setList((old) => ({
          rows: unique([...old.rows, ...page.items]),
          total: page.total,
          cursor: page.nextCursor,
        }));
      })
      .catch(fail)
      .finally(() => (fetching.current = false));
  };

  return { ...list, ...state, held, more, again: () => void refresh().catch(fail) };
}

/** A fresh head over what was loaded below it. */
function joined(page: SessionPage, old: List): List {
  if (old.rows.length <= PAGE || page.nextCursor === null) {
    return { rows: page.items, total: page.total, cursor: page.nextCursor };
  }
  return { rows: unique([...page.items, ...old.rows.slice(PAGE)]), total: page.total, cursor: old.cursor };
}

function unique(rows: SessionOut[]): SessionOut[] {
  const seen = new Set<string>();
  return rows.filter((row) => !seen.has(row.id) && seen.add(row.id));
}
