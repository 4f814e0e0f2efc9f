// Small components shared by all pages.
import type { ComponentChildren } from "preact";
import { ago, duration, fullDateTime, humanize } from "../format";
import { now } from "../live/clock";
import { Icon } from "./icons";

const STATUS_LABELS: Record<string, string> = {
  waiting: "needs input", // "waiting" could be mistaken for a scheduled retry
  open: "running",
  "": "idle",
};

/** Status badge. The status of a parked incident is `open`: its `parkedUntil` says that it is parked. */
export function Badge({ status: stored, parkedUntil = null }: { status: string; parkedUntil?: number | null }) {
  const status = parkedUntil === null ? stored : "parked";
  const name = status === "open" ? "running" : status || "succeeded";
  return <span class={`badge ${name}`}>{STATUS_LABELS[status] ?? humanize(status)}</span>;
}

/** Relative time that updates itself; the exact time is in its title. */
export function Ago({ at }: { at: number }) {
  return (
    <time title={fullDateTime(at)} dateTime={new Date(at * 1000).toISOString()}>
      {ago(at, now.value)}
    </time>
  );
}

/** Countdown to a point in time. */
export function Countdown({ until }: { until: number }) {
  const remaining = until - now.value;
  return <span class="countdown">{remaining > 0.5 ? `in ${duration(Math.ceil(remaining))}` : "starting"}</span>;
}

/** Elapsed time that updates itself. */
export function Since({ at }: { at: number }) {
  return <>{duration(Math.max(0, Math.floor(now.value - at)))}</>;
}

export function Model({ model, former }: { model: string; former: string }) {
  if (!former || former === model) return <span class="truncate">{model || "–"}</span>;
  return (
    <span class="model-change truncate" title={`Changed from ${former} to ${model}`}>
      <span class="former truncate">{former}</span>
      <Icon name="arrow" size={12} />
      <span class="truncate">{model}</span>
      <span class="visually-hidden">(changed)</span>
    </span>
  );
}

interface Choice {
  value: string;
  label: string;
}

export function Select({ label, value, choices, pick }: { label: string; value: string; choices: readonly Choice[]; pick: (value: string) => void }) {
  return (
    <select class="select" aria-label={label} value={value} onChange={(event) => pick(event.currentTarget.value)}>
      {choices.map((one) => (
        <option key={one.value} value={one.value} selected={one.value === value}>
          {one.label}
        </option>
      ))}
    </select>
  );
}

/** Single choice as a row of buttons. */
export function Tabs({ label, value, choices, pick }: { label: string; value: string; choices: readonly Choice[]; pick: (value: string) => void }) {
  return (
    <div class="tabs" role="group" aria-label={label}>
      {choices.map((one) => (
        <button key={one.value} type="button" aria-pressed={one.value === value} onClick={() => pick(one.value)}>
          {one.label}
        </button>
      ))}
    </div>
  );
}

export function Facts({ items }: { items: readonly [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {items.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
