// Bar chart with one bar per day; each bar is a link.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { day, percent } from "../format";

export interface DayBar {
  at: number;
  value: number | null; // a share by default; see `format`
  text: string;
  href: string;
}

const HEIGHT = 190;
const AXIS_WIDTH = 44;
const AXIS_HEIGHT = 22;

export function DailyChart({ days, label, format = (value: number) => percent(value, value < 0.1 ? 1 : 0) }: { days: readonly DayBar[]; label: string; format?: (value: number) => string }) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(600);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => entry && setWidth(Math.max(240, entry.contentRect.width)));
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const max = roundUp(Math.max(...days.map((one) => one.value ?? 0), 0));
  const step = (width - AXIS_WIDTH) / Math.max(1, days.length);
  const barWidth = Math.max(2, Math.min(34, step - 4));
  const y = (value: number) => 8 + (1 - value / max) * (HEIGHT - AXIS_HEIGHT - 8);
  const labelInterval = Math.max(1, Math.ceil(64 / step));
  return (
    <div ref={box} class="days">
      <svg width={width} height={HEIGHT} role="group" aria-label={label}>
        {[0, 0.5, 1].map((share) => (
          <g key={share} aria-hidden="true">
            <line class="grid-line" x1={AXIS_WIDTH} x2={width} y1={y(max * share)} y2={y(max * share)} />
            <text class="axis" x={AXIS_WIDTH - 8} y={y(max * share) + 4} text-anchor="end">{format(max * share)}</text>
          </g>
        ))}
        {days.map((one, n) => {
          const x = AXIS_WIDTH + n * step + (step - barWidth) / 2;
          const top = y(one.value ?? 0);
          return (
            <a key={one.at} href={one.href} aria-label={`${day(one.at)}: ${one.text}`}>
              <title>{`${day(one.at)}: ${one.text}`}</title>
              <rect class="day-hit-area" x={AXIS_WIDTH + n * step} y="0" width={step} height={HEIGHT - AXIS_HEIGHT} />
              <rect class="day-bar" x={x} y={top} width={barWidth} height={Math.max(one.value ? 1.5 : 0, HEIGHT - AXIS_HEIGHT - top)} rx="2.5" />
              {n % labelInterval === 0 ? <text class="axis" x={x + barWidth / 2} y={HEIGHT - 5} text-anchor="middle" aria-hidden="true">{day(one.at)}</text> : null}
            </a>
          );
        })}
      </svg>
    </div>
  );
}

/** Returns the next round number above the largest value. */
function roundUp(max: number): number {
  if (max <= 0) return 1;
  const unit = 10 ** Math.floor(Math.log10(max));
  return ([1, 2, 4, 5, 10].find((n) => n * unit >= max) ?? 10) * unit;
}
