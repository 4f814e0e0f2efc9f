// What waits for a person, known on every page: the number in the menu, and the desktop notification for those who want it.
import { effect, signal } from "@preact/signals";
import { get, me } from "../api";
import type { InboxItem } from "../wire";
import { RELOAD, connection, listen } from "./bus";

export const inbox = signal<InboxItem[] | null>(null);
export const waiting = signal(0);
export const hasCrew = signal(false);
export const notifies = signal(wanted());

const APART_MS = 1_500;
let timer: ReturnType<typeof setTimeout> | null = null;
let known: Set<string> | null = null;

function wanted(): boolean {
  try {
    return localStorage.getItem("rung.notify") === "yes" && "Notification" in window && Notification.permission === "granted";
  } catch {
    return false;
  }
}

export async function setNotifies(on: boolean): Promise<string | null> {
  if (on && !("Notification" in window)) return "This browser does not support desktop notifications.";
  if (on && (await Notification.requestPermission()) !== "granted") return "Notifications are blocked for this site in the browser settings.";
  notifies.value = on;
  localStorage.setItem("rung.notify", on ? "yes" : "no");
  return null;
}

export async function readInbox(): Promise<void> {
  const items = await get<InboxItem[]>("inbox");
  const fresh = known === null ? [] : items.filter((one) => !known?.has(one.id));
  known = new Set(items.map((one) => one.id));
  inbox.value = items;
  waiting.value = items.length;
  if (notifies.value && fresh.length > 0) announce(fresh);
}

/** Of several tabs, one speaks: a notification with the same tag replaces the other's. */
function announce(items: InboxItem[]): void {
  for (const item of items.slice(0, 3)) {
    const note = new Notification(item.title, { body: item.detail.slice(0, 200), tag: item.id });
    note.onclick = () => {
      window.focus();
      location.hash = "#/inbox";
    };
  }
}

listen((messages) => {
  const telling = messages.some(({ name }) => name === RELOAD || name === "act" || TELLING.has(name));
  if (!telling || timer !== null) return;
  timer = setTimeout(() => {
    timer = null;
    readInbox().catch(() => undefined); // the inbox page shows what is wrong
  }, APART_MS);
});

const TELLING = new Set(["decided", "answered", "closed", "cancelled", "crashed", "attempt_failed"]);

effect(() => {
  if (me.value === null || connection.value === "lost") return;
  get<unknown[]>("crews").then((crews) => (hasCrew.value = crews.length > 0), () => undefined);
});
