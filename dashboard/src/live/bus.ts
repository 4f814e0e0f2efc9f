// Event bus with one event stream per browser. Over HTTP/1.1 a browser opens at most six connections per host, so a
// stream per tab would block the seventh tab. The tab that holds the lock is the leader and reads the stream; the
// others receive messages on a broadcast channel, and one takes over when the leader closes.
import { batch, signal } from "@preact/signals";
import { address, signedOut } from "../api";
import { type Message, readStream } from "./stream";

export type Connection = "connecting" | "live" | "stale" | "lost";

export const connection = signal<Connection>("connecting");
export const lastMessageAt = signal(Date.now());

/** Local event: any data may have changed and must be reloaded. */
export const RELOAD = "#reload";

const STALE_MS = 30_000;
const RETRY_MS = 2_000;
const HEARTBEAT_MS = 1_000;
const MAX_QUEUED = 2_000;

type Listener = (messages: readonly Message[]) => void;
type ChannelMessage = { heartbeat: true } | { message: Message } | { lost: true } | { hello: true } | { signedIn: true };

const listeners = new Set<Listener>();
const scope = `rung:${new URL(".", document.baseURI).pathname}`;
const channel = new BroadcastChannel(scope);
let lastId = "";
let queue: Message[] = [];
let isLeader = false;
let scheduled = false;
let heartbeatSentAt = 0;
let endPause = () => {}; // ends the leader's pause before its next connection

/** Subscribes to events, delivered at most once per animation frame. Returns the unsubscribe function. */
export function subscribe(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Starts receiving the service's events; called once. */
export function connect(): void {
  channel.onmessage = ({ data }: MessageEvent<ChannelMessage>) => {
    if ("heartbeat" in data) markAlive();
    else if ("hello" in data) replyWithState();
    else if ("lost" in data) connection.value = "lost";
    else if ("signedIn" in data) endPause();
    else enqueue(data.message);
  };
  channel.postMessage({ hello: true } satisfies ChannelMessage); // do not wait for the next event to learn the state
  signedOut.subscribe((isSignedOut) => {
    if (!isSignedOut && connection.peek() === "lost") onSignedIn();
  });
  setInterval(() => {
    if (Date.now() - lastMessageAt.value > STALE_MS && connection.value === "live") connection.value = "stale";
  }, 1_000);
  if ("locks" in navigator) {
    void navigator.locks.request(scope, () => readAsLeader(new AbortController().signal));
    return;
  }
  // The lock API is not available over plain HTTP: read the stream only while the tab is visible.
  let stream: AbortController | null = null;
  const followVisibility = () => {
    stream?.abort();
    stream = document.hidden ? null : new AbortController();
    if (stream) void readAsLeader(stream.signal);
  };
  document.addEventListener("visibilitychange", followVisibility);
  followVisibility();
}

async function readAsLeader(signal: AbortSignal): Promise<never | void> {
  isLeader = true;
  for (;;) {
    try {
      const url = address("events");
      await readStream(url, lastId, signal, onStreamOpen, sendHeartbeat, (message) => {
        channel.postMessage({ message } satisfies ChannelMessage);
        enqueue(message);
      });
    } catch {
      if (signal.aborted) return;
    }
    connection.value = "lost";
    channel.postMessage({ lost: true } satisfies ChannelMessage);
    await pause(signedOut.value ? 5 * RETRY_MS : RETRY_MS);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    endPause = () => {
      clearTimeout(timer);
      resolve();
    };
  });
}

/** Connects at once, in this tab or in the leader's: the stream is missing only because nobody was signed in. */
function onSignedIn(): void {
  connection.value = "connecting";
  channel.postMessage({ signedIn: true } satisfies ChannelMessage);
  endPause();
}

/** Sends the connection state to a new tab if this tab is the leader. */
function replyWithState(): void {
  if (!isLeader) return;
  if (connection.value === "live") channel.postMessage({ heartbeat: true } satisfies ChannelMessage);
  if (connection.value === "lost") channel.postMessage({ lost: true } satisfies ChannelMessage);
}

function onStreamOpen(): void {
  sendHeartbeat();
  // The service's buffer may have lost events since the last connection, so everything is reloaded.
  emit({ id: "", name: RELOAD, data: {} });
}

function emit(message: Message): void {
  channel.postMessage({ message } satisfies ChannelMessage);
  enqueue(message);
}

function sendHeartbeat(): void {
  markAlive();
  if (Date.now() - heartbeatSentAt < HEARTBEAT_MS) return;
  heartbeatSentAt = Date.now();
  channel.postMessage({ heartbeat: true } satisfies ChannelMessage);
}

function markAlive(): void {
  lastMessageAt.value = Date.now();
  connection.value = "live";
}

function enqueue(message: Message): void {
  markAlive();
  if (message.id) lastId = message.id;
  queue.push(message);
  if (queue.length > MAX_QUEUED) queue = [{ id: "", name: RELOAD, data: {} }]; // a tab hidden for long: reload everything
  if (scheduled) return;
  scheduled = true;
  // Hidden tabs get no animation frames.
  if (document.hidden) setTimeout(flush, 250);
  else requestAnimationFrame(flush);
}

function flush(): void {
  const messages = queue;
  queue = [];
  scheduled = false;
  batch(() => {
    for (const listener of listeners) listener(messages);
  });
}
