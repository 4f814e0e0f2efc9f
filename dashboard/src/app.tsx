import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { me, meet, signedOut } from "./api";
import { route } from "./route";
import { SignedOut } from "./ui/empty";
import { Shell } from "./ui/shell";
import { Toasts } from "./ui/toast";

type Page = ComponentType<{ path: readonly string[]; params: URLSearchParams }>;

// Each page is a file of its own, fetched when it is first opened.
const PAGES: Record<string, () => Promise<{ default: Page }>> = {
  sessions: () => import("./pages/sessions"),
};

export function App() {
  const { path, params } = route.value;
  const name = path[0] ?? "sessions";
  const [pages, setPages] = useState<Record<string, Page>>({});

  useEffect(() => {
    meet().catch(() => undefined); // a page that needs it says so itself
  }, []);

  useEffect(() => {
    const load = PAGES[name];
    if (!load || pages[name]) return;
    load().then(
      (module) => setPages((old) => ({ ...old, [name]: module.default })),
      () => location.reload(), // the service was updated under us: the file has another name now
    );
  }, [name]);

  const Current = pages[name];
  return (
    <Shell here={name} me={me.value}>
      {signedOut.value ? <SignedOut /> : Current ? <Current path={path.slice(1)} params={params} /> : PAGES[name] ? null : <Nowhere />}
      <Toasts />
    </Shell>
  );
}

function Nowhere() {
  return (
    <section class="page">
      <h1>No such page</h1>
      <p class="muted">
        The address may be from another version. <a href="#/sessions">Go to the sessions</a>.
      </p>
    </section>
  );
}
