// A share of something, day by day; each day is a link.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { day, percent } from "../format";

export interface Day {
  at: number;
  value: number | null; // a share, or an amount with `format`
  said: string;
  href: string;
}

const HIGH = 190;
const LEFT = 44;
const BOTTOM = 22;

export function Days({ days, label, format = (value: number) => percent(value, value < 0.1 ? 1 : 0) }: { days: readonly Day[]; label: string; format?: (value: number) => string }) {
  const box = useRef<HTMLDivElement>(null);
  const [wide, setWide] = useState(600);
  useLayoutEffect(() => {
    const watch = new ResizeObserver(([entry]) => entry && setWide(Math.max(240, entry.contentRect.width)));
    if (box.current) watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const most = scale(Math.max(...days.map((one) => one.value ?? 0), 0));
  const step = (wide - LEFT) / Math.max(1, days.length);
  const bar = Math.max(2, Math.min(34, step - 4));
  const y = (value: number) => 8 + (1 - value / most) * (HIGH - BOTTOM - 8);
  const every = Math.max(1, Math.ceil(64 / step));
  return (
    <div ref={box} class="days">
      <svg width={wide} height={HIGH} role="group" aria-label={label}>
        {[0, 0.5, 1].map((share) => (
          <g key={share} aria-hidden="true">
            <line class="grid-line" x1={LEFT} x2={wide} y1={y(most * share)} y2={y(most * share)} />
            <text class="axis" x={LEFT - 8} y={y(most * share) + 4} text-anchor="end">{format(most * share)}</text>
          </g>
        ))}
        {days.map((one, n) => {
          const x = LEFT + n * step + (step - bar) / 2;
          const top = y(one.value ?? 0);
          return (
            <a key={one.at} href={one.href} aria-label={`${day(one.at)}: ${one.said}`}>
              <title>{`${day(one.at)}: ${one.said}`}</title>
              <rect class="day-reach" x={LEFT + n * step} y="0" width={step} height={HIGH - BOTTOM} />
              <rect class="day-bar" x={x} y={top} width={bar} height={Math.max(one.value ? 1.5 : 0, HIGH - BOTTOM - top)} rx="2.5" />
              {n % every === 0 ? <text class="axis" x={x + bar / 2} y={HIGH - 5} text-anchor="middle" aria-hidden="true">{day(one.at)}</text> : null}
            </a>
          );
        })}
      </svg>
    </div>
  );
}

/** The next round number above the largest value. */
function scale(most: number): number {
  if (most <= 0) return 1;
  const unit = 10 ** Math.floor(Math.log10(most));
  return ([1, 2, 4, 5, 10].find((n) => n * unit >= most) ?? 10) * unit;
}
