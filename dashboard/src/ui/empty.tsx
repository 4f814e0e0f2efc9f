// What stands where there is nothing to show: why, and what to do next.
import type { ComponentChildren } from "preact";
import type { ApiError } from "../api";
import { Mark } from "./icons";

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <Mark size={40} />
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Failed({ error, again }: { error: ApiError; again: () => void }) {
  const missing = error.status === 404;
  return (
    <div class="empty" role="alert">
      <Mark size={40} />
      <h2>{missing ? "Not found" : "This could not be loaded"}</h2>
      <p>{error.message}</p>
      {missing ? null : (
        <button class="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

export function SignedOut() {
  return (
    <section class="page">
      <Empty title="This browser has no token">
        <p>
          Open the address that <code>rung up</code> printed when it started: it carries the token. To see it again:
        </p>
        <pre>rung up --show-url</pre>
      </Empty>
    </section>
  );
}

export function Loading({ rows = 4 }: { rows?: number }) {
  return (
    <div class="card" aria-busy="true">
      <span class="unseen" role="status">
        Loading
      </span>
      <div class="inside">
        {Array.from({ length: rows }, (_, n) => (
          <p key={n} class={`skeleton s${n % 4}`} />
        ))}
      </div>
    </div>
  );
}
