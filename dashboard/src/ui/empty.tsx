// Empty states, load errors, sign-in and loading placeholders.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { type ApiError, signIn } from "../api";
import { Logo } from "./icons";

export function EmptyState({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <Logo size={40} />
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function LoadError({ error, retry }: { error: ApiError; retry: () => void }) {
  const notFound = error.status === 404;
  return (
    <div class="empty" role="alert">
      <Logo size={40} />
      <h2>{notFound ? "Not found" : "Could not load the data"}</h2>
      <p>{error.message}</p>
      {notFound ? null : (
        <button class="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

export function SignInForm() {
  const [token, setToken] = useState("");
  const [message, setMessage] = useState<string | null>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    try {
      await signIn(token.trim());
    } catch (error) {
      setMessage(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <section class="page">
      <EmptyState title="You are not signed in">
        <p>
          Open the address that <code>rung serve</code> printed at startup; it contains the token. Or enter the token here.
        </p>
        <form class="actions" onSubmit={submit}>
          <input class="input" type="password" autocomplete="current-password" aria-label="Token" aria-invalid={message !== null} value={token} onInput={(event) => setToken(event.currentTarget.value)} />
          <button class="button primary" disabled={token.trim() === ""}>Sign in</button>
        </form>
        {message ? <p class="error-text" role="alert">{message}</p> : null}
      </EmptyState>
    </section>
  );
}

export function Loading({ rows = 4 }: { rows?: number }) {
  return (
    <div class="card" aria-busy="true">
      <span class="visually-hidden" role="status">
        Loading
      </span>
      <div class="card-body">
        {Array.from({ length: rows }, (_, n) => (
          <p key={n} class={`skeleton s${n % 4}`} />
        ))}
      </div>
    </div>
  );
}
