// A trend in a few pixels.

const WIDTH = 96;
const HEIGHT = 26;

export function Spark({ values, label, wide = WIDTH, high = HEIGHT }: { values: readonly (number | null)[]; label: string; wide?: number; high?: number }) {
  const known = values.filter((value): value is number => value !== null);
  if (known.length < 2) return <span class="spark-none" />;
  const most = Math.max(...known);
  const least = Math.min(...known, 0);
  const span = most - least || 1;
  const x = (n: number) => 2 + (n * (wide - 4)) / Math.max(1, values.length - 1);
  const y = (value: number) => high - 3 - ((value - least) / span) * (high - 6);
  // A day nobody knows anything about is a gap in the line.
  let path = "";
  let pen = false;
  values.forEach((value, n) => {
    if (value === null) pen = false;
    else {
      path += `${pen ? "L" : "M"}${x(n).toFixed(1)} ${y(value).toFixed(1)}`;
      pen = true;
    }
  });
  const last = values.findLastIndex((value) => value !== null);
  return (
    <svg class="spark" width={wide} height={high} viewBox={`0 0 ${wide} ${high}`} role="img" aria-label={label}>
      <path d={path} fill="none" stroke="currentColor" stroke-width="1.6" stroke-linejoin="round" stroke-linecap="round" />
      <circle cx={x(last)} cy={y(values[last] ?? 0)} r="2.4" fill="currentColor" />
    </svg>
  );
}
