// The time by the service's clock, once a second. It stands still while the connection is stale: a countdown that
// goes on after the line is cut would lie.
import { signal } from "@preact/signals";
import { skew } from "../api";
import { connection } from "./bus";

export const now = signal(read());

function read(): number {
  return Date.now() / 1000 + skew.peek();
}

setInterval(() => {
  if (connection.peek() === "live" || connection.peek() === "connecting") now.value = read();
}, 1000);
