import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { me, loadMe, signedOut } from "./api";
import { RELOAD, subscribe } from "./live/bus";
import { route } from "./route";
import { EmptyState, SignInForm } from "./ui/empty";
import { Shell } from "./ui/shell";
import { Toasts } from "./ui/toast";

type Page = ComponentType<{ path: readonly string[]; params: URLSearchParams }>;

// Each page is a separate chunk, loaded when it is first opened.
const PAGES: Record<string, () => Promise<{ default: Page }>> = {
  sessions: () => import("./pages/sessions"),
  session: () => import("./pages/session"),
  inbox: () => import("./pages/inbox"),
  incidents: () => import("./pages/incidents"),
  incident: () => import("./pages/incident"),
  analytics: () => import("./pages/analytics"),
  policies: () => import("./pages/policies"),
  alerts: () => import("./pages/alerts"),
  budgets: () => import("./pages/budgets"),
  crew: () => import("./pages/crew"),
  fleet: () => import("./pages/fleet"),
  task: () => import("./pages/task"),
};

/** `#/sessions` is the list, `#/sessions/ID` the detail page. */
const DETAIL_PAGES: Record<string, string> = { sessions: "session", incidents: "incident", crew: "task" };

export function App() {
  const { path, params } = route.value;
  const section = path[0] ?? "sessions";
  const name = (path.length > 1 && DETAIL_PAGES[section]) || section;
  const [pages, setPages] = useState<Record<string, Page>>({});

  useEffect(() => {
    const refresh = () => void loadMe().catch(() => undefined); // pages show the error themselves
    refresh();
    // A restarted service may have another version and another CSRF token.
    return subscribe((messages) => messages.some((one) => one.name === RELOAD) && refresh());
  }, []);

  useEffect(() => {
    const load = Object.hasOwn(PAGES, name) ? PAGES[name] : undefined;
    if (!load || pages[name]) return;
    const storePage = (page: Page) => setPages((old) => ({ ...old, [name]: page }));
    load().then((module) => storePage(module.default), () => storePage(Outdated));
  }, [name]);

  useEffect(() => {
    document.title = `${name[0]?.toUpperCase()}${name.slice(1)} · Rung`;
    scrollTo(0, 0);
  }, [name, path[1], path[2]]);

  const Current = pages[name];
  return (
    <Shell current={section} me={me.value}>
      {signedOut.value ? <SignInForm /> : Current ? <Current path={path.slice(1)} params={params} /> : Object.hasOwn(PAGES, name) ? null : <NotFound />}
      <Toasts />
    </Shell>
  );
}

/** Shown if a page's chunk no longer exists because the service was updated. */
function Outdated() {
  return (
    <section class="page">
      <EmptyState title="A new version is available">
        <button class="button primary" onClick={() => location.reload()}>
          Reload
        </button>
      </EmptyState>
    </section>
  );
}

function NotFound() {
  return (
    <section class="page">
      <h1>Page not found</h1>
      <p class="muted">
        The link may belong to another version. <a href="#/sessions">Go to sessions</a>.
      </p>
    </section>
  );
}
