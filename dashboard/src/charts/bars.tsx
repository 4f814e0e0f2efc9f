// Horizontal bar chart; the label of a bar can be a link.
import type { ComponentChildren } from "preact";

export interface Bar {
  key: string;
  label: string;
  value: number;
  part?: number; // the highlighted part of the value
  valueText: ComponentChildren;
  href: string | null; // of the label: the incidents that a bar is about, which need not be as many as its value
}

export function Bars({ bars, label }: { bars: readonly Bar[]; label: string }) {
  const max = Math.max(...bars.map((bar) => bar.value), 1e-9);
  return (
    <ul class="bars" aria-label={label}>
      {bars.map((bar) => (
        <li key={bar.key} class="bar"><BarContent bar={bar} max={max} /></li>
      ))}
    </ul>
  );
}

function BarContent({ bar, max }: { bar: Bar; max: number }) {
  const width = (value: number) => ({ width: `${Math.max(0.6, (value / max) * 100)}%` });
  return (
    <>
      {bar.href === null ? <span class="bar-label truncate">{bar.label}</span> : <a class="bar-label truncate" href={bar.href}>{bar.label}</a>}
      <span class="bar-track" aria-hidden="true">
        <span class={bar.part === undefined ? "bar-fill" : "bar-fill faint"} style={width(bar.value)} />
        {bar.part === undefined ? null : <span class="bar-fill over" style={width(bar.part)} />}
      </span>
      <span class="bar-value">{bar.valueText}</span>
    </>
  );
}
