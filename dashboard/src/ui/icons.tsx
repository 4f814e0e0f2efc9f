// Icons as SVG paths in the current text colour.
import type { JSX } from "preact";

const PATHS = {
  sessions: "M3 5h14M3 10h14M3 15h9",
  inbox: "M3 11l2.2-6.2A1.2 1.2 0 0 1 6.3 4h7.4a1.2 1.2 0 0 1 1.1.8L17 11v4a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1zM3 11h4l1 2h4l1-2h4",
  incidents: "M6 2.5v15M14 2.5v15M6 6h8M6 10h8M6 14h8",
  analytics: "M3 17h14M5.5 14V9M10 14V4M14.5 14v-3.5",
  policies: "M4 6h7M15 6h1M4 14h1M9 14h7M13 4v4M7 12v4",
  crew: "M7 9a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM2.5 16c.4-2.8 2.2-4.3 4.5-4.3s4.1 1.5 4.5 4.3M13 9.2a2.2 2.2 0 1 0-.8-4.2M14 12c1.9.3 3.2 1.7 3.5 4",
  fleet: "M3.5 4h13v4h-13zM3.5 12h13v4h-13zM6.5 6h.1M6.5 14h.1M10 8v4",
  alerts: "M10 3a4.5 4.5 0 0 0-4.5 4.5c0 4-1.5 5-1.5 6h12c0-1-1.5-2-1.5-6A4.5 4.5 0 0 0 10 3zM8.5 16a1.6 1.6 0 0 0 3 0",
  budgets: "M10 2.8v14.4M13.6 5.6c-.8-.9-2-1.3-3.6-1.3-2.1 0-3.6 1-3.6 2.7 0 4 7.4 1.7 7.4 5.9 0 1.8-1.6 2.9-3.8 2.9-1.8 0-3.2-.6-4-1.7",
  copy: "M7 7h9v9H7zM4 13V4h9",
  sun: "M10 13.2a3.2 3.2 0 1 0 0-6.4 3.2 3.2 0 0 0 0 6.4zM10 2.5v1.6M10 15.9v1.6M2.5 10h1.6M15.9 10h1.6M4.7 4.7l1.1 1.1M14.2 14.2l1.1 1.1M15.3 4.7l-1.1 1.1M5.8 14.2l-1.1 1.1",
  moon: "M16.5 11.6A6.7 6.7 0 0 1 8.4 3.5a6.7 6.7 0 1 0 8.1 8.1z",
  pause: "M7 4.5v11M13 4.5v11",
  play: "M6.5 4.2v11.6l9-5.8z",
  close: "M5 5l10 10M15 5L5 15",
  search: "M9 14.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11zM13.2 13.2L17 17",
  up: "M10 16V4M5 9l5-5 5 5",
  retry: "M16 6.5V3.2M16 6.5h-3.3M15.6 6.5A6.5 6.5 0 1 0 16.5 10",
  stop: "M5.5 5.5h9v9h-9z",
  bell: "M10 3a4.5 4.5 0 0 0-4.5 4.5c0 4-1.5 5-1.5 6h12c0-1-1.5-2-1.5-6A4.5 4.5 0 0 0 10 3zM8.5 16a1.6 1.6 0 0 0 3 0",
  help: "M7.6 7.6a2.4 2.4 0 1 1 3.5 2.2c-.8.4-1.1.9-1.1 1.8M10 14.4v.2",
  download: "M10 3.5v9M6 9l4 4 4-4M4 16.5h12",
  check: "M4 10.5l4 4 8-9",
  arrow: "M4 10h12M11 5l5 5-5 5",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }): JSX.Element {
  return (
    <svg width={size} height={size} viewBox="0 0 20 20" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

export function Logo({ size = 24 }: { size?: number }): JSX.Element {
  return (
    <svg width={size} height={size} viewBox="0 0 24 24" fill="none" stroke-linecap="round" aria-hidden="true">
      <path d="M7 2.5v19M17 2.5v19" stroke="var(--ink-3)" stroke-width="2" />
      <path d="M7 17.5h10M7 12h10" stroke="var(--lit)" stroke-width="2.6" />
      <path d="M7 6.5h10" stroke="var(--line-strong)" stroke-width="2.6" />
    </svg>
  );
}
