// Where the reader is, kept in the address after '#': it survives a reload and works under any prefix.
import { signal } from "@preact/signals";

export interface Route {
  path: readonly string[];
  params: URLSearchParams;
}

export const route = signal<Route>(read());

addEventListener("hashchange", () => {
  route.value = read();
});

function read(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  return { path: path.split("/").filter(Boolean).map(decode), params: new URLSearchParams(query) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a lone % is no reason to show nothing
  }
}

type Params = Record<string, string | number | null | undefined>;

/** The address of a page; what is empty is left out. */
export function link(path: readonly string[], params: Params = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, String(value));
  }
  const text = query.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

export function go(path: readonly string[], params: Params = {}): void {
  location.hash = link(path, params);
}

/** Change some of the page's parameters without a new entry in the browser's history. */
export function amend(changes: Params): void {
  const params: Params = Object.fromEntries(route.peek().params);
  history.replaceState(null, "", link(route.peek().path, { ...params, ...changes }));
  route.value = read();
}
