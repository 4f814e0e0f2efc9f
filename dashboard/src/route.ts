// Hash-based routing: survives a reload and works under any URL prefix.
import { signal } from "@preact/signals";

export interface Route {
  path: readonly string[];
  params: URLSearchParams;
}

export const route = signal<Route>(parseLocation());

addEventListener("hashchange", () => {
  route.value = parseLocation();
});

function parseLocation(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  return { path: path.split("/").filter(Boolean).map(decode), params: new URLSearchParams(query) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // malformed percent-encoding
  }
}

type Params = Record<string, string | number | null | undefined>;

/** Returns the address of a page; empty parameters are omitted. */
export function hrefTo(path: readonly string[], params: Params = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, String(value));
  }
  const text = query.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

export function navigate(path: readonly string[], params: Params = {}): void {
  location.hash = hrefTo(path, params);
}

/** Changes parameters of the current page without a new history entry. */
export function updateParams(changes: Params): void {
  const params: Params = Object.fromEntries(route.peek().params);
  history.replaceState(null, "", hrefTo(route.peek().path, { ...params, ...changes }));
  route.value = parseLocation();
}
