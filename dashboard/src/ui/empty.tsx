// What stands where there is nothing to show: why, and what to do next.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { type ApiError, signIn } from "../api";
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
  const [token, setToken] = useState("");
  const [wrong, setWrong] = useState<string | null>(null);
  const enter = async (event: Event) => {
    event.preventDefault();
    try {
      await signIn(token.trim());
    } catch (error) {
      setWrong(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <section class="page">
      <Empty title="This browser is not signed in">
        <p>
          Open the address that <code>rung serve</code> printed when it started: it carries the token. Or give the token here.
        </p>
        <form class="actions" onSubmit={enter}>
          <input class="input" type="password" autocomplete="current-password" aria-label="Token" aria-invalid={wrong !== null} value={token} onInput={(event) => setToken(event.currentTarget.value)} />
          <button class="button primary" disabled={token.trim() === ""}>Sign in</button>
        </form>
        {wrong ? <p class="wrong" role="alert">{wrong}</p> : null}
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
