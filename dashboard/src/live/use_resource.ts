// Data from the service: kept during a reload, and reloaded when an event affects it.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api";
import { RELOAD, subscribe } from "./bus";
import type { Message } from "./stream";

export interface Resource<T> {
  data: T | null;
  error: ApiError | null;
  loading: boolean;
  reload: () => void;
}

const RELOAD_DELAY_MS = 1_000;

/** Loads data under a key; a null key loads nothing. `isAffectedBy` selects the events that cause a reload. */
export function useResource<T>(
  key: string | null,
  load: (signal: AbortSignal) => Promise<T>,
  isAffectedBy: (message: Message) => boolean = () => false,
  delayMs = RELOAD_DELAY_MS,
): Resource<T> {
  const [state, set] = useState<{ key: string | null; data: T | null; error: ApiError | null; loading: boolean }>({
    key, data: null, error: null, loading: true,
  });
  const [version, setVersion] = useState(0);
  const latest = useRef({ load, isAffectedBy });
  latest.current = { load, isAffectedBy };

  useEffect(() => {
    if (key === null) return;
    const controller = new AbortController();
    set((old) => ({ key, data: old.key === key ? old.data : null, error: null, loading: true }));
    latest.current.load(controller.signal).then(
      (data) => !controller.signal.aborted && set({ key, data, error: null, loading: false }),
      (error: unknown) => {
        if (controller.signal.aborted) return;
        const apiError = error instanceof ApiError ? error : new ApiError(0, String(error));
        set((old) => ({ ...old, error: apiError, loading: false }));
      },
    );
    return () => controller.abort();
  }, [key, version]);

  useEffect(() => {
    if (key === null) return;
    let timer: ReturnType<typeof setTimeout> | null = null;
    const unsubscribe = subscribe((messages) => {
      if (timer !== null) return;
      if (!messages.some((one) => one.name === RELOAD || latest.current.isAffectedBy(one))) return;
      timer = setTimeout(() => {
        timer = null;
        setVersion((n) => n + 1);
      }, delayMs);
    });
    return () => {
      unsubscribe();
      if (timer !== null) clearTimeout(timer);
    };
  }, [key]);

  const isCurrent = state.key === key;
  return {
    data: isCurrent ? state.data : null,
    error: isCurrent ? state.error : null,
    loading: isCurrent ? state.loading : true,
    reload: () => setVersion((n) => n + 1),
  };
}
