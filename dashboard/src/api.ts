// Client of the service's public API. URLs are relative to the page.
import { signal } from "@preact/signals";
import type { CurrentUser, LoginOut } from "./wire";

/** A rejected or failed request; `message` can be shown to the user. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly field: string | null = null,
  ) {
    super(message);
  }
}

export const me = signal<CurrentUser | null>(null);
export const signedOut = signal(false);
/** The service's clock minus the browser's clock, in seconds. */
export const clockSkew = signal(0);

export type Query = Record<string, string | number | boolean | null | undefined>;

export interface ApiResponse<T> {
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
  // The key prevents that a repeated request takes effect twice.
  return (await call<T>("POST", path, { body, headers: { "Idempotency-Key": randomKey(), ...headers } })).data;
}

interface Options {
  query?: Query;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export async function call<T>(method: string, path: string, options: Options = {}): Promise<ApiResponse<T>> {
  const headers: Record<string, string> = { Accept: "application/json", ...csrfHeader(), ...options.headers };
  const init: RequestInit = { method, headers, credentials: "same-origin" };
  if (options.signal) init.signal = options.signal;
  if (method !== "GET") {
    headers["Content-Type"] = "application/json";
    init.body = JSON.stringify(options.body ?? {});
  }
  let response: Response;
  try {
    response = await fetch(address(path, options.query), init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "Cannot reach the service. Is `rung serve` still running?");
  }
  if (!response.ok) throw await toApiError(response);
  signedOut.value = false;
  const data = response.status === 204 ? undefined : await response.json();
  return { data: data as T, etag: response.headers.get("ETag") };
}

/** Loads the identity and permissions of this browser. */
export async function loadMe(): Promise<CurrentUser> {
  const requestedAt = Date.now();
  const response = await fetch(address("me"), { headers: csrfHeader(), credentials: "same-origin" }).catch(() => null);
  if (!response) throw new ApiError(0, "Cannot reach the service. Is `rung serve` still running?");
  if (!response.ok) throw await toApiError(response);
  const date = Date.parse(response.headers.get("Date") ?? "");
  const offset = (date - (requestedAt + Date.now()) / 2) / 1000;
  if (Math.abs(offset) > 2) clockSkew.value = offset; // the Date header has a resolution of one second
  signedOut.value = false;
  return (me.value = (await response.json()) as CurrentUser);
}

/** The CSRF token of this browser's session. Unlike a cookie, no other port of this host ever sees it. */
let csrf: string | null = null;
const CSRF_KEY = "rung-csrf";

export function csrfToken(): string {
  try {
    return localStorage.getItem(CSRF_KEY) ?? ""; // another tab may have signed in again
  } catch {
    return csrf ?? ""; // storage is disabled: the session lasts as long as this page
  }
}

export function csrfHeader(): Record<string, string> {
  return { "X-Rung-CSRF": csrfToken() };
}

/** Signs in with the token of the printed address, and removes it from the address bar. */
export async function signInByAddress(): Promise<void> {
  const token = new URLSearchParams(location.search).get("token");
  if (token === null) return;
  history.replaceState(null, "", location.pathname + location.hash);
  await signIn(token).catch(() => (signedOut.value = true));
}

/** Exchanges a token for a session cookie and its CSRF token. */
export async function signIn(token: string): Promise<void> {
  const init = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }) };
  const response = await fetch(address("login"), init).catch(() => null);
  if (!response) throw new ApiError(0, "Cannot reach the service. Is `rung serve` still running?");
  if (!response.ok) throw await toApiError(response);
  csrf = ((await response.json()) as LoginOut).csrf;
  try {
    localStorage.setItem(CSRF_KEY, csrf);
  } catch {
    // storage is disabled
  }
  await loadMe();
}

async function toApiError(response: Response): Promise<ApiError> {
  if (response.status === 401) signedOut.value = true;
  try {
    const problem = await response.json();
    const detail = problem.detail ?? problem.title;
    const text = typeof detail === "string" ? detail : JSON.stringify(detail);
    return new ApiError(response.status, text, problem.field ?? null);
  } catch {
    return new ApiError(response.status, `The service returned ${response.status} ${response.statusText}`.trim());
  }
}

function randomKey(): string {
  // crypto.randomUUID is not available over plain HTTP.
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Returns why the user lacks a role, or null if the user has it. */
export function deniedReason(requiredRole: "act" | "admin"): string | null {
  const role = me.value?.role;
  if (role === undefined || role === "admin" || role === requiredRole) return null;
  return requiredRole === "admin" ? "Your token does not permit changing policies." : "Your token is read-only.";
}
