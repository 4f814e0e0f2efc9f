// The service's public API, and nothing but it. Addresses are relative to the page.
import { signal } from "@preact/signals";
import type { Me } from "./wire";

/** Something the service refused or could not do; `message` is fit to be shown. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly field: string | null = null,
  ) {
    super(message);
  }
}

export const me = signal<Me | null>(null);
export const signedOut = signal(false);
/** The service's clock minus this browser's, in seconds. */
export const skew = signal(0);

export type Query = Record<string, string | number | boolean | null | undefined>;

export interface Answer<T> {
  data: T;
  etag: string | null;
}

export function address(path: string, query: Query = {}): string {
  const url = new URL(`api/${path}`, document.baseURI);
  url.hash = "";
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, String(value));
  }
  return url.href;
}

export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return (await call<T>("GET", path, { query, signal })).data;
}

export async function post<T>(path: string, body: unknown = {}, headers: Record<string, string> = {}): Promise<T> {
  // A second click, or a retry of ours, must not act twice.
  return (await call<T>("POST", path, { body, headers: { "Idempotency-Key": unique(), ...headers } })).data;
}

interface Options {
  query?: Query;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export async function call<T>(method: string, path: string, options: Options = {}): Promise<Answer<T>> {
  const headers: Record<string, string> = { Accept: "application/json", ...options.headers };
  const init: RequestInit = { method, headers, credentials: "same-origin" };
  if (options.signal) init.signal = options.signal;
  if (method !== "GET") {
    headers["Content-Type"] = "application/json";
    headers["X-Rung-CSRF"] = (me.peek() ?? (await meet())).csrf;
    init.body = JSON.stringify(options.body ?? {});
  }
  let response: Response;
  try {
    response = await fetch(address(path, options.query), init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "The service does not answer. Is `rung serve` still running?");
  }
  if (!response.ok) throw await refusal(response);
  signedOut.value = false;
  const data = response.status === 204 ? undefined : await response.json();
  return { data: data as T, etag: response.headers.get("ETag") };
}

/** Who this browser is to the service; asked for once, and again after a sign-out. */
export async function meet(): Promise<Me> {
  const asked = Date.now();
  const response = await fetch(address("me"), { credentials: "same-origin" }).catch(() => null);
  if (!response) throw new ApiError(0, "The service does not answer. Is `rung serve` still running?");
  if (!response.ok) throw await refusal(response);
  const date = Date.parse(response.headers.get("Date") ?? "");
  const apart = (date - (asked + Date.now()) / 2) / 1000;
  if (Math.abs(apart) > 2) skew.value = apart; // the header counts whole seconds
  signedOut.value = false;
  return (me.value = (await response.json()) as Me);
}

/** Change a token for the cookie by which this browser is known. */
export async function signIn(token: string): Promise<void> {
  const init = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }) };
  const response = await fetch(address("login"), init).catch(() => null);
  if (!response) throw new ApiError(0, "The service does not answer. Is `rung serve` still running?");
  if (!response.ok) throw await refusal(response);
  await meet();
}

async function refusal(response: Response): Promise<ApiError> {
  if (response.status === 401) signedOut.value = true;
  try {
    const problem = await response.json();
    const said = problem.detail ?? problem.title;
    const text = typeof said === "string" ? said : JSON.stringify(said);
    return new ApiError(response.status, text, problem.field ?? null);
  } catch {
    return new ApiError(response.status, `The service answered ${response.status} ${response.statusText}`.trim());
  }
}

function unique(): string {
  // crypto.randomUUID is missing on plain http under a LAN name.
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Why this browser may not act, or null when it may. */
export function mayNot(need: "act" | "admin"): string | null {
  const role = me.value?.role;
  if (role === undefined || role === "admin" || role === need) return null;
  return need === "admin" ? "Your token may not change policies." : "Your token may only read.";
}
