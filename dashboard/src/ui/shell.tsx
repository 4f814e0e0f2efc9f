import type { ComponentChildren } from "preact";
import { connection, lastMessageAt } from "../live/bus";
import { time } from "../format";
import type { CurrentUser } from "../wire";
import { Icon, type IconName, Logo } from "./icons";
import { navigate } from "../route";
import { hasCrew, hasFleet, inboxCount } from "../live/inbox";
import { Help, openHelp } from "./help";
import { useKeys } from "./shortcuts";
import { ThemeSwitch } from "./theme";

const SECTIONS: { name: IconName & string; label: string }[] = [
  { name: "sessions", label: "Sessions" },
  { name: "inbox", label: "Inbox" },
  { name: "incidents", label: "Incidents" },
  { name: "analytics", label: "Analytics" },
  { name: "policies", label: "Policies" },
];

const CONNECTION_LABELS = {
  connecting: { text: "connecting", tone: "succeeded" },
  live: { text: "live", tone: "recovered" },
  stale: { text: "stale", tone: "retrying" },
  lost: { text: "reconnecting", tone: "failed" },
} as const;

export function Shell({ current, me, children }: { current: string; me: CurrentUser | null; children: ComponentChildren }) {
  const sections = [...SECTIONS];
  if (hasCrew.value) sections.push({ name: "crew", label: "Crew" });
  if (hasFleet.value) sections.push({ name: "fleet", label: "Fleet" });
  useKeys({
    "g s": () => navigate(["sessions"]), "g i": () => navigate(["inbox"]), "g n": () => navigate(["incidents"]),
    "g a": () => navigate(["analytics"]), "g p": () => navigate(["policies"]), "g c": () => navigate(["crew"]), "g f": () => navigate(["fleet"]), "?": openHelp,
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
                  {name === "inbox" && inboxCount.value > 0 ? (
                    <span class="bubble">
                      {inboxCount.value}
                      <span class="visually-hidden"> items</span>
                    </span>
                  ) : null}
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

function ConnectionStatus() {
  const { text, tone } = CONNECTION_LABELS[connection.value];
  return (
    <span class={`connection ${tone}`} role="status" title={`Last update from the service at ${time(lastMessageAt.value / 1000)}`}>
      {text}
    </span>
  );
}

function StaleBanner() {
  const state = connection.value;
  if (state !== "stale" && state !== "lost") return null;
  return (
    <p class={`banner ${state === "stale" ? "retrying" : "failed"}`} role="status">
      {state === "stale" ? "No updates from the service" : "Connection to the service lost; reconnecting"}. The data is from {time(lastMessageAt.value / 1000)}; countdowns are paused.
    </p>
  );
}
