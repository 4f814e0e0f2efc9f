// Polling for what has no event stream: a crew's table, the status of gateways. Hidden tabs do not poll.
import { useEffect } from "preact/hooks";
import { connection } from "./bus";

const INTERVAL_MS = 2_000;

export function usePoll(reload: () => void, intervalMs = INTERVAL_MS): void {
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden && connection.peek() === "live") reload();
    }, intervalMs);
    return () => clearInterval(timer);
  }, []);
}
