// Horizontal bar chart; each bar can be a link.
import type { ComponentChildren } from "preact";

export interface Bar {
  key: string;
  label: string;
  value: number;
  part?: number; // the highlighted part of the value
  valueText: ComponentChildren;
  href: string | null;
}

export function Bars({ bars, label }: { bars: readonly Bar[]; label: string }) {
  const max = Math.max(...bars.map((bar) => bar.value), 1e-9);
  return (
    <ul class="bars" aria-label={label}>
      {bars.map((bar) => (
        <li key={bar.key}>{bar.href === null ? <div class="bar"><BarContent bar={bar} max={max} /></div> : <a class="bar" href={bar.href}><BarContent bar={bar} max={max} /></a>}</li>
      ))}
    </ul>
  );
}

function BarContent({ bar, max }: { bar: Bar; max: number }) {
  const width = (value: number) => ({ width: `${Math.max(0.6, (value / max) * 100)}%` });
  return (
    <>
      <span class="bar-label truncate">{bar.label}</span>
      <span class="bar-track" aria-hidden="true">
        <span class={bar.part === undefined ? "bar-fill" : "bar-fill faint"} style={width(bar.value)} />
        {bar.part === undefined ? null : <span class="bar-fill over" style={width(bar.part)} />}
      </span>
      <span class="bar-value">{bar.valueText}</span>
    </>
  );
}
