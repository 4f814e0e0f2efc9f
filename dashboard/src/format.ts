// Formatting of numbers and times in the user's locale and time zone.

const locale = (() => {
  try {
    return new Intl.NumberFormat(navigator.language).resolvedOptions().locale;
  } catch {
    return "en"; // some headless browsers report an invalid language
  }
})();

const timeFormat = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const minuteFormat = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit" });
const dayTimeFormat = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const fullFormat = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "long" });
const dayFormat = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short" });
const numberFormat = new Intl.NumberFormat(locale);

export const count = (value: number): string => numberFormat.format(value);

const MAX_COUNT = 10_000;

/** Formats a total; the service stops counting at the limit. */
export const total = (value: number): string => (value > MAX_COUNT ? `more than ${count(MAX_COUNT)}` : count(value));

export function dollars(value: number | null | undefined): string {
  if (value === null || value === undefined) return "unknown";
  if (value === 0) return "$0";
  const digits = Math.abs(value) < 0.01 ? 4 : Math.abs(value) < 100 ? 2 : 0;
  return `${value < 0 ? "−" : ""}$${Math.abs(value).toLocaleString(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits })}`;
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
  if (rounded < 3600) return twoUnits(Math.floor(rounded / 60), "min", rounded % 60, "s");
  if (rounded < 86_400) return twoUnits(Math.floor(rounded / 3600), "h", Math.floor((rounded % 3600) / 60), "min");
  return twoUnits(Math.floor(rounded / 86_400), "d", Math.floor((rounded % 86_400) / 3600), "h");
}

function twoUnits(large: number, unit: string, small: number, smaller: string): string {
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

/** Returns the UTC seconds of a time in ISO 8601. */
export const fromIso = (text: string): number => Date.parse(text) / 1000;

export const time = (at: number): string => timeFormat.format(date(at));
export const shortDateTime = (at: number): string => dayTimeFormat.format(date(at));
/** "16:20", on another day "20 Nov, 06:34" */
export const shortMoment = (at: number, now: number): string => (day(at) === day(now) ? minuteFormat.format(date(at)) : shortDateTime(at));
export const fullDateTime = (at: number): string => fullFormat.format(date(at));
export const day = (at: number): string => dayFormat.format(date(at));

/** Formats an identifier such as `rate_limit` as "rate limit". */
export const humanize = (name: string): string => name.replaceAll("_", " ");

/** "retry 2 of 3", or "waits for the service, probe 4" */
export function nextAttempt(retry: { attempt: number; of: number | null; isProbe: boolean }): string {
  return retry.isProbe ? `waits for the service, probe ${retry.attempt}` : `retry ${retry.attempt}${retry.of ? ` of ${retry.of}` : ""}`;
}

export function plural(n: number, singular: string, many = `${singular}s`): string {
  return `${count(n)} ${n === 1 ? singular : many}`;
}
