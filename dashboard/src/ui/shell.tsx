import type { ComponentChildren } from "preact";
import { connection, heardAt } from "../live/bus";
import { time } from "../format";
import type { Me } from "../wire";
import { Icon, type IconName, Mark } from "./icons";
import { go } from "../route";
import { hasCrew, waiting } from "../live/waiting";
import { Help, openHelp } from "./help";
import { useKeys } from "./keys";
import { ThemeSwitch } from "./theme";

const PLACES: { name: IconName & string; label: string }[] = [
  { name: "sessions", label: "Sessions" },
  { name: "inbox", label: "Inbox" },
  { name: "incidents", label: "Incidents" },
  { name: "analytics", label: "Analytics" },
  { name: "policies", label: "Policies" },
];

const LINE = {
  connecting: { text: "connecting", tone: "succeeded" },
  live: { text: "live", tone: "recovered" },
  stale: { text: "stale", tone: "retrying" },
  lost: { text: "reconnecting", tone: "failed" },
} as const;

export function Shell({ here, me, children }: { here: string; me: Me | null; children: ComponentChildren }) {
  const places = hasCrew.value ? [...PLACES, { name: "crew" as const, label: "Crew" }] : PLACES;
  useKeys({
    "g s": () => go(["sessions"]), "g i": () => go(["inbox"]), "g n": () => go(["incidents"]),
    "g a": () => go(["analytics"]), "g p": () => go(["policies"]), "g c": () => go(["crew"]), "?": openHelp,
  });
  return (
    <div class="shell">
      <a class="button skip" href="#content" onClick={(event) => { event.preventDefault(); document.getElementById("content")?.focus(); }}>
        Skip to the content
      </a>
      <header class="side">
        <a class="brand" href="#/sessions">
          <Mark /> Rung
        </a>
        <nav aria-label="Pages">
          <ul>
            {places.map(({ name, label }) => (
              <li key={name}>
                <a href={`#/${name}`} aria-current={here === name ? "page" : undefined}>
                  <Icon name={name} /> {label}
                  {name === "inbox" && waiting.value > 0 ? (
                    <span class="bubble">
                      {waiting.value}
                      <span class="unseen"> waiting</span>
                    </span>
                  ) : null}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <div class="side-foot">
          <Line />
          <div class="actions">
            <ThemeSwitch />
            <button class="button plain tiny" onClick={openHelp} aria-label="Keyboard shortcuts" title="Keyboard: ?">
              <Icon name="help" />
            </button>
            {me ? <span class="quiet small wide-only">{me.version}</span> : null}
          </div>
        </div>
      </header>
      <main id="content" tabIndex={-1}>
        <Stale />
        {me?.demo ? (
          <p class="banner">
            <span>A demo: scripted agents fail and recover.</span>
            <span>In earnest: <code>rung serve</code></span>
          </p>
        ) : null}
        {me?.trouble ? <p class="banner failed" role="alert">{me.trouble}</p> : null}
        {children}
      </main>
      <Help />
    </div>
  );
}

function Line() {
  const { text, tone } = LINE[connection.value];
  return (
    <span class={`line ${tone}`} role="status" title={`Last heard from the service at ${time(heardAt.value / 1000)}`}>
      {text}
    </span>
  );
}

function Stale() {
  const state = connection.value;
  if (state !== "stale" && state !== "lost") return null;
  return (
    <p class={`banner ${state === "stale" ? "retrying" : "failed"}`} role="status">
      {state === "stale" ? "Nothing heard from the service" : "The connection to the service is lost; trying again"}. What you see is from {time(heardAt.value / 1000)}, and the clocks stand still.
    </p>
  );
}
