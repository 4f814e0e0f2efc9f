// Amounts side by side, each a link to what is behind it.
import type { ComponentChildren } from "preact";

export interface Bar {
  key: string;
  label: string;
  value: number;
  part?: number; // the lit share of the value
  said: ComponentChildren;
  href: string | null;
}

export function Bars({ bars, label }: { bars: readonly Bar[]; label: string }) {
  const most = Math.max(...bars.map((bar) => bar.value), 1e-9);
  return (
    <ul class="bars" aria-label={label}>
      {bars.map((bar) => (
        <li key={bar.key}>{bar.href === null ? <div class="bar"><Inside bar={bar} most={most} /></div> : <a class="bar" href={bar.href}><Inside bar={bar} most={most} /></a>}</li>
      ))}
    </ul>
  );
}

function Inside({ bar, most }: { bar: Bar; most: number }) {
  const width = (value: number) => ({ width: `${Math.max(0.6, (value / most) * 100)}%` });
  return (
    <>
      <span class="bar-label cut">{bar.label}</span>
      <span class="bar-track" aria-hidden="true">
        <span class={bar.part === undefined ? "bar-fill" : "bar-fill faint"} style={width(bar.value)} />
        {bar.part === undefined ? null : <span class="bar-fill over" style={width(bar.part)} />}
      </span>
      <span class="bar-said">{bar.said}</span>
    </>
  );
}
