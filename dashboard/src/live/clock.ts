// The service's time, updated once a second. It stops while the connection is stale, because countdowns would
// otherwise be wrong.
import { signal } from "@preact/signals";
import { clockSkew } from "../api";
import { connection } from "./bus";

export const now = signal(serviceTime());

function serviceTime(): number {
  return Date.now() / 1000 + clockSkew.peek();
}

setInterval(() => {
  if (connection.peek() === "live" || connection.peek() === "connecting") now.value = serviceTime();
}, 1000);
