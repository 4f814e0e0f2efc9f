// One event stream per browser. Over HTTP/1.1 a browser opens six connections to a host, so a stream in each tab
// would hang the seventh. The tab that holds the lock reads; the others listen on a channel and take over when it goes.
import { batch, signal } from "@preact/signals";
import { address, signedOut } from "../api";
import { type Message, read } from "./stream";

export type Connection = "connecting" | "live" | "stale" | "lost";

export const connection = signal<Connection>("connecting");
export const heardAt = signal(Date.now());

/** Not an event of the service: everything may have changed, ask for it anew. */
export const RELOAD = "#reload";

const STALE_MS = 30_000;
const RETRY_MS = 2_000;
const BEAT_MS = 1_000;
const MOST_WAITING = 2_000;

type Listener = (messages: readonly Message[]) => void;
type Word = { beat: true } | { message: Message } | { lost: true } | { hello: true };

const listeners = new Set<Listener>();
const scope = `rung:${new URL(".", document.baseURI).pathname}`;
const channel = new BroadcastChannel(scope);
let lastId = "";
let waiting: Message[] = [];
let leading = false;
let scheduled = false;
let beatAt = 0;

/** Be told of events, at most once per animation frame. Returns how to stop. */
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Begin following the service's events; called once. */
export function follow(): void {
  channel.onmessage = ({ data }: MessageEvent<Word>) => {
    if ("beat" in data) heard();
    else if ("hello" in data) answer();
    else if ("lost" in data) connection.value = "lost";
    else take(data.message);
  };
  channel.postMessage({ hello: true } satisfies Word); // on a quiet stream the next word could be long in coming
  setInterval(() => {
    if (Date.now() - heardAt.value > STALE_MS && connection.value === "live") connection.value = "stale";
  }, 1_000);
  if ("locks" in navigator) {
    void navigator.locks.request(scope, () => lead(new AbortController().signal));
    return;
  }
  // No locks on plain http under a LAN name: hold the stream only while someone looks.
  let shown: AbortController | null = null;
  const look = () => {
    shown?.abort();
    shown = document.hidden ? null : new AbortController();
    if (shown) void lead(shown.signal);
  };
  document.addEventListener("visibilitychange", look);
  look();
}

async function lead(stop: AbortSignal): Promise<never | void> {
  leading = true;
  for (;;) {
    try {
      const url = address("events");
      await read(url, lastId, stop, opened, beat, (message) => {
        channel.postMessage({ message } satisfies Word);
        take(message);
      });
    } catch {
      if (stop.aborted) return;
    }
    connection.value = "lost";
    channel.postMessage({ lost: true } satisfies Word);
    await new Promise((resolve) => setTimeout(resolve, signedOut.value ? 5 * RETRY_MS : RETRY_MS));
  }
}

/** A new tab asks how things stand; the one that reads the stream tells it. */
function answer(): void {
  if (!leading) return;
  if (connection.value === "live") channel.postMessage({ beat: true } satisfies Word);
  if (connection.value === "lost") channel.postMessage({ lost: true } satisfies Word);
}

function opened(): void {
  beat();
  // What happened while nobody read may be older than the service still holds: everything is asked for anew.
  emit({ id: "", name: RELOAD, data: {} });
}

function emit(message: Message): void {
  channel.postMessage({ message } satisfies Word);
  take(message);
}

function beat(): void {
  heard();
  if (Date.now() - beatAt < BEAT_MS) return;
  beatAt = Date.now();
  channel.postMessage({ beat: true } satisfies Word);
}

function heard(): void {
  heardAt.value = Date.now();
  connection.value = "live";
}

function take(message: Message): void {
  heard();
  if (message.id) lastId = message.id;
  waiting.push(message);
  if (waiting.length > MOST_WAITING) waiting = [{ id: "", name: RELOAD, data: {} }]; // a tab left hidden: read it all anew
  if (scheduled) return;
  scheduled = true;
  // A hidden tab gets no animation frames.
  if (document.hidden) setTimeout(flush, 250);
  else requestAnimationFrame(flush);
}

function flush(): void {
  const messages = waiting;
  waiting = [];
  scheduled = false;
  batch(() => {
    for (const listener of listeners) listener(messages);
  });
}
