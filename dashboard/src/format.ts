// Numbers and times as a reader wants them, in the reader's own zone and language.

const language = (() => {
  try {
    return new Intl.NumberFormat(navigator.language).resolvedOptions().locale;
  } catch {
    return "en"; // some headless browsers name a language that is none
  }
})();

const clockTime = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const dayAndTime = new Intl.DateTimeFormat(language, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const whole = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "long" });
const dayOnly = new Intl.DateTimeFormat(language, { day: "numeric", month: "short" });
const numbers = new Intl.NumberFormat(language);

export const count = (value: number): string => numbers.format(value);

const COUNTED = 10_000;

/** How many there are; the service counts no further than this. */
export const total = (value: number): string => (value > COUNTED ? `more than ${count(COUNTED)}` : count(value));

export function dollars(value: number | null | undefined): string {
  if (value === null || value === undefined) return "unknown";
  if (value === 0) return "$0";
  const digits = Math.abs(value) < 0.01 ? 4 : Math.abs(value) < 100 ? 2 : 0;
  return `${value < 0 ? "−" : ""}$${Math.abs(value).toLocaleString(language, { minimumFractionDigits: digits, maximumFractionDigits: digits })}`;
}

export function percent(share: number | null | undefined, digits = 0): string {
  return share === null || share === undefined ? "–" : `${(share * 100).toFixed(digits)} %`;
}

/** "840 ms", "12 s", "3 min 20 s", "2 h 5 min", "3 d" */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  if (seconds < 0.001) return "0 s";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1).replace(/\.0$/, "")} s`;
  const rounded = Math.round(seconds);
  if (rounded < 60) return `${rounded} s`;
  if (rounded < 3600) return pair(Math.floor(rounded / 60), "min", rounded % 60, "s");
  if (rounded < 86_400) return pair(Math.floor(rounded / 3600), "h", Math.floor((rounded % 3600) / 60), "min");
  return pair(Math.floor(rounded / 86_400), "d", Math.floor((rounded % 86_400) / 3600), "h");
}

function pair(large: number, unit: string, small: number, smaller: string): string {
  return small ? `${large} ${unit} ${small} ${smaller}` : `${large} ${unit}`;
}

export function ago(at: number, now: number): string {
  const seconds = Math.max(0, now - at);
  if (seconds < 5) return "just now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}

const date = (at: number) => new Date(at * 1000);

export const time = (at: number): string => clockTime.format(date(at));
export const moment = (at: number): string => dayAndTime.format(date(at));
export const exactly = (at: number): string => whole.format(date(at));
export const day = (at: number): string => dayOnly.format(date(at));

/** `rate_limit` reads better as "rate limit". */
export const words = (name: string): string => name.replaceAll("_", " ");

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}
