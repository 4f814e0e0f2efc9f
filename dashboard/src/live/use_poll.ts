// Polling for crew pages: a crew's table has no event stream. Hidden tabs do not poll.
import { useEffect } from "preact/hooks";
import { connection } from "./bus";

const INTERVAL_MS = 2_000;

export function usePoll(reload: () => void): void {
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden && connection.peek() === "live") reload();
    }, INTERVAL_MS);
    return () => clearInterval(timer);
  }, []);
}
