// A crew's table is no journal: it has no stream of events, so who looks at it asks again, as long as somebody looks.
import { useEffect } from "preact/hooks";
import { connection } from "./bus";

const EVERY_MS = 2_000;

export function usePoll(again: () => void): void {
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden && connection.peek() === "live") again();
    }, EVERY_MS);
    return () => clearInterval(timer);
  }, []);
}
