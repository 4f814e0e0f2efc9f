// Inbox state for all pages: the count in the menu and desktop notifications.
import { effect, signal } from "@preact/signals";
import { get, me } from "../api";
import type { AlertsOut, FleetOut, InboxItem } from "../wire";
import { RELOAD, connection, subscribe } from "./bus";

export const inbox = signal<InboxItem[] | null>(null);
export const inboxCount = signal(0);
export const firingCount = signal(0);
export const hasCrew = signal(false);
export const hasFleet = signal(false);
export const notificationsEnabled = signal(loadNotificationSetting());

const RELOAD_DELAY_MS = 1_500;
const ALERTS_POLL_MS = 30_000;
let timer: ReturnType<typeof setTimeout> | null = null;
let knownIds: Set<string> | null = null;

function loadNotificationSetting(): boolean {
  try {
    return localStorage.getItem("rung.notify") === "yes" && "Notification" in window && Notification.permission === "granted";
  } catch {
    return false;
  }
}

export async function setNotificationsEnabled(enabled: boolean): Promise<string | null> {
  if (enabled && !("Notification" in window)) return "This browser does not support desktop notifications.";
  if (enabled && (await Notification.requestPermission()) !== "granted") return "Notifications are blocked for this site in the browser settings.";
  notificationsEnabled.value = enabled;
  localStorage.setItem("rung.notify", enabled ? "yes" : "no");
  return null;
}

export async function loadInbox(): Promise<void> {
  const items = await get<InboxItem[]>("inbox");
  const newItems = knownIds === null ? [] : items.filter((one) => !knownIds?.has(one.id));
  knownIds = new Set(items.map((one) => one.id));
  inbox.value = items;
  inboxCount.value = items.length;
  if (notificationsEnabled.value && newItems.length > 0) notify(newItems);
}

/** Shows notifications. The tag prevents duplicates from several tabs. */
function notify(items: InboxItem[]): void {
  for (const item of items.slice(0, 3)) {
    const notification = new Notification(item.title, { body: item.detail.slice(0, 200), tag: item.id });
    notification.onclick = () => {
      window.focus();
      location.hash = "#/inbox";
    };
  }
}

subscribe((messages) => {
  const isAffected = messages.some(({ name }) => name === RELOAD || name === "act" || INBOX_EVENTS.has(name));
  if (!isAffected || timer !== null) return;
  timer = setTimeout(() => {
    timer = null;
    loadInbox().catch(() => undefined); // the inbox page shows the error
  }, RELOAD_DELAY_MS);
});

const INBOX_EVENTS = new Set(["decided", "answered", "closed", "cancelled", "crashed", "attempt_failed", "ordered", "unparked"]);

/** Counts the rules that fire, in the journal or in a crew. */
export function countFiring(alerts: AlertsOut): number {
  return alerts.rules.filter((rule) => rule.state === "firing" || rule.scopes.some((one) => one.state === "firing")).length;
}

function loadFiring(): void {
  get<AlertsOut>("alerts").then((alerts) => (firingCount.value = countFiring(alerts)), () => undefined); // the alerts page shows the error
}

setInterval(() => {
  if (me.peek() !== null && !document.hidden && connection.peek() === "live") loadFiring();
}, ALERTS_POLL_MS);

effect(() => {
  if (me.value === null || connection.value === "lost") return;
  loadFiring();
  get<unknown[]>("crews").then((crews) => (hasCrew.value = crews.length > 0), () => undefined);
  get<FleetOut>("fleet").then((fleet) => (hasFleet.value = fleet.executors.length > 0), () => undefined);
});
