// What a page has asked the service for: kept while it is asked again, asked again when an event says it changed.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api";
import { RELOAD, listen } from "./bus";
import type { Message } from "./stream";

export interface Resource<T> {
  data: T | null;
  error: ApiError | null;
  loading: boolean;
  again: () => void;
}

const APART_MS = 1_000;

/** Load under a key; a null key loads nothing. `when` says which events make it stale. */
export function useResource<T>(
  key: string | null,
  load: (signal: AbortSignal) => Promise<T>,
  when: (message: Message) => boolean = () => false,
  apart = APART_MS,
): Resource<T> {
  const [state, set] = useState<{ key: string | null; data: T | null; error: ApiError | null; loading: boolean }>({
    key, data: null, error: null, loading: true,
  });
  const [turn, setTurn] = useState(0);
  const latest = useRef({ load, when });
  latest.current = { load, when };

  useEffect(() => {
    if (key === null) return;
    const stop = new AbortController();
    set((old) => ({ key, data: old.key === key ? old.data : null, error: null, loading: true }));
    latest.current.load(stop.signal).then(
      (data) => !stop.signal.aborted && set({ key, data, error: null, loading: false }),
      (error: unknown) => {
        if (stop.signal.aborted) return;
        const told = error instanceof ApiError ? error : new ApiError(0, String(error));
        set((old) => ({ ...old, error: told, loading: false }));
      },
    );
    return () => stop.abort();
  }, [key, turn]);

  useEffect(() => {
    if (key === null) return;
    let timer: ReturnType<typeof setTimeout> | null = null;
    const stop = listen((messages) => {
      if (timer !== null) return;
      if (!messages.some((one) => one.name === RELOAD || latest.current.when(one))) return;
      timer = setTimeout(() => {
        timer = null;
        setTurn((n) => n + 1);
      }, apart);
    });
    return () => {
      stop();
      if (timer !== null) clearTimeout(timer);
    };
  }, [key]);

  const mine = state.key === key;
  return {
    data: mine ? state.data : null,
    error: mine ? state.error : null,
    loading: mine ? state.loading : true,
    again: () => setTurn((n) => n + 1),
  };
}
