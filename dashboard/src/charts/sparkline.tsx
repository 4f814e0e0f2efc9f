// Sparkline: a small trend chart without axes.

const WIDTH = 96;
const HEIGHT = 26;

export function Sparkline({ values, label, width = WIDTH, height = HEIGHT }: { values: readonly (number | null)[]; label: string; width?: number; height?: number }) {
  const numbers = values.filter((value): value is number => value !== null);
  if (numbers.length < 2) return <span class="sparkline-empty" />;
  const max = Math.max(...numbers);
  const min = Math.min(...numbers, 0);
  const span = max - min || 1;
  const x = (n: number) => 2 + (n * (width - 4)) / Math.max(1, values.length - 1);
  const y = (value: number) => height - 3 - ((value - min) / span) * (height - 6);
  // A missing value is a gap in the line.
  let path = "";
  let isDrawing = false;
  values.forEach((value, n) => {
    if (value === null) isDrawing = false;
    else {
      path += `${isDrawing ? "L" : "M"}${x(n).toFixed(1)} ${y(value).toFixed(1)}`;
      isDrawing = true;
    }
  });
  const last = values.findLastIndex((value) => value !== null);
  return (
    <svg class="sparkline" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      <path d={path} fill="none" stroke="currentColor" stroke-width="1.6" stroke-linejoin="round" stroke-linecap="round" />
      <circle cx={x(last)} cy={y(values[last] ?? 0)} r="2.4" fill="currentColor" />
    </svg>
  );
}
