import type { ComponentChildren } from "preact";
import { connection, heardAt } from "../live/bus";
import { time } from "../format";
import type { Me } from "../wire";
import { Icon, type IconName, Mark } from "./icons";
import { Help, openHelp } from "./help";
import { ThemeSwitch } from "./theme";

const PLACES: { name: IconName & string; label: string; more: string[] }[] = [
  { name: "sessions", label: "Sessions", more: ["session"] },
];

const LINE = {
  connecting: { text: "connecting", tone: "succeeded" },
  live: { text: "live", tone: "recovered" },
  stale: { text: "stale", tone: "retrying" },
  lost: { text: "reconnecting", tone: "failed" },
} as const;

export function Shell({ here, me, children }: { here: string; me: Me | null; children: ComponentChildren }) {
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
            {PLACES.map(({ name, label, more }) => (
              <li key={name}>
                <a href={`#/${name}`} aria-current={here === name || more.includes(here) ? "page" : undefined}>
                  <Icon name={name} /> {label}
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
