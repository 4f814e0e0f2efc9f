import type { ComponentChildren } from "preact";
import { signedOut } from "../api";
import { connection, lastMessageAt } from "../live/bus";
import { time } from "../format";
import type { CurrentUser } from "../wire";
import { Icon, type IconName, Logo } from "./icons";
import { navigate } from "../route";
import { firingCount, hasCrew, hasFleet, inboxCount } from "../live/inbox";
import { Help, openHelp } from "./help";
import { useKeys } from "./shortcuts";
import { ThemeSwitch } from "./theme";

const SECTIONS: { name: IconName & string; label: string }[] = [
  { name: "sessions", label: "Sessions" },
  { name: "inbox", label: "Inbox" },
  { name: "incidents", label: "Incidents" },
  { name: "analytics", label: "Analytics" },
  { name: "policies", label: "Policies" },
  { name: "budgets", label: "Budgets" },
  { name: "alerts", label: "Alerts" },
];

const CONNECTION_LABELS = {
  connecting: { text: "connecting", tone: "succeeded" },
  live: { text: "live", tone: "recovered" },
  stale: { text: "stale", tone: "retrying" },
  lost: { text: "reconnecting", tone: "failed" },
} as const;
const SIGNED_OUT_LABEL = { text: "signed out", tone: "succeeded" } as const;

export function Shell({ current, me, children }: { current: string; me: CurrentUser | null; children: ComponentChildren }) {
  const sections = [...SECTIONS];
  if (hasCrew.value) sections.push({ name: "crew", label: "Crew" });
  if (hasFleet.value) sections.push({ name: "fleet", label: "Fleet" });
  useKeys({
    "g s": () => navigate(["sessions"]), "g i": () => navigate(["inbox"]), "g n": () => navigate(["incidents"]),
    "g a": () => navigate(["analytics"]), "g p": () => navigate(["policies"]),
    "g b": () => navigate(["budgets"]), "g l": () => navigate(["alerts"]), "?": openHelp,
    ...(hasCrew.value ? { "g c": () => navigate(["crew"]) } : {}),
    ...(hasFleet.value ? { "g f": () => navigate(["fleet"]) } : {}),
  });
  return (
    <div class="shell">
      <a class="button skip" href="#content" onClick={(event) => { event.preventDefault(); document.getElementById("content")?.focus(); }}>
        Skip to content
      </a>
      <header class="side">
        <a class="brand" href="#/sessions">
          <Logo /> Rung
        </a>
        <nav aria-label="Pages">
          <ul>
            {sections.map(({ name, label }) => (
              <li key={name}>
                <a href={`#/${name}`} aria-current={current === name ? "page" : undefined}>
                  <Icon name={name} /> {label}
                  {name === "inbox" ? <Bubble count={inboxCount.value} what="items" /> : null}
                  {name === "alerts" ? <Bubble count={firingCount.value} what="firing" /> : null}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <div class="side-foot">
          <ConnectionStatus />
          <div class="actions">
            <ThemeSwitch />
            <button class="button plain tiny" onClick={openHelp} aria-label="Keyboard shortcuts" title="Keyboard shortcuts (?)">
              <Icon name="help" />
            </button>
            {me ? <span class="quiet small wide-only">{me.version}</span> : null}
          </div>
        </div>
      </header>
      <main id="content" tabIndex={-1}>
        <StaleBanner />
        {me?.demo ? (
          <p class="banner">
            <span>Demo: scripted agents fail and recover.</span>
            <span>For your own agents, run <code>rung serve</code>.</span>
          </p>
        ) : null}
        {me?.trouble ? <p class="banner failed" role="alert">{me.trouble}</p> : null}
        {children}
      </main>
      <Help />
    </div>
  );
}

function Bubble({ count, what }: { count: number; what: string }) {
  if (count === 0) return null;
  return (
    <span class="bubble">
      {count}
      <span class="visually-hidden"> {what}</span>
    </span>
  );
}

function ConnectionStatus() {
  const { text, tone } = signedOut.value ? SIGNED_OUT_LABEL : CONNECTION_LABELS[connection.value];
  return (
    <span class={`connection ${tone}`} role="status" title={`Last update from the service at ${time(lastMessageAt.value / 1000)}`}>
      {text}
    </span>
  );
}

function StaleBanner() {
  const state = connection.value;
  if (signedOut.value) return null; // there is no stream to lose, and no data that could be old
  if (state !== "stale" && state !== "lost") return null;
  return (
    <p class={`banner ${state === "stale" ? "retrying" : "failed"}`} role="status">
      {state === "stale" ? "No updates from the service" : "Connection to the service lost; reconnecting"}. The data is from {time(lastMessageAt.value / 1000)}; countdowns are paused.
    </p>
  );
}
