import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { me, meet, signedOut } from "./api";
import { RELOAD, listen } from "./live/bus";
import { route } from "./route";
import { Empty, SignedOut } from "./ui/empty";
import { Shell } from "./ui/shell";
import { Toasts } from "./ui/toast";

type Page = ComponentType<{ path: readonly string[]; params: URLSearchParams }>;

// Each page is a file of its own, fetched when it is first opened.
const PAGES: Record<string, () => Promise<{ default: Page }>> = {
  sessions: () => import("./pages/sessions"),
  session: () => import("./pages/session"),
  inbox: () => import("./pages/inbox"),
  incidents: () => import("./pages/incidents"),
  incident: () => import("./pages/incident"),
  analytics: () => import("./pages/analytics"),
  policies: () => import("./pages/policies"),
  crew: () => import("./pages/crew"),
  task: () => import("./pages/task"),
};

/** `#/sessions` is the list, `#/sessions/ID` one of them. */
const ONE: Record<string, string> = { sessions: "session", incidents: "incident", crew: "task" };

export function App() {
  const { path, params } = route.value;
  const place = path[0] ?? "sessions";
  const name = (path.length > 1 && ONE[place]) || place;
  const [pages, setPages] = useState<Record<string, Page>>({});

  useEffect(() => {
    const ask = () => void meet().catch(() => undefined); // a page that needs it says so itself
    ask();
    // A service that was started anew may be another version, and wants another mark with each act.
    return listen((messages) => messages.some((one) => one.name === RELOAD) && ask());
  }, []);

  useEffect(() => {
    const load = Object.hasOwn(PAGES, name) ? PAGES[name] : undefined;
    if (!load || pages[name]) return;
    const keep = (page: Page) => setPages((old) => ({ ...old, [name]: page }));
    load().then((module) => keep(module.default), () => keep(Outdated));
  }, [name]);

  useEffect(() => {
    document.title = `${name[0]?.toUpperCase()}${name.slice(1)} · Rung`;
    scrollTo(0, 0);
  }, [name, path[1], path[2]]);

  const Current = pages[name];
  return (
    <Shell here={place} me={me.value}>
      {signedOut.value ? <SignedOut /> : Current ? <Current path={path.slice(1)} params={params} /> : Object.hasOwn(PAGES, name) ? null : <Nowhere />}
      <Toasts />
    </Shell>
  );
}

/** The service was updated while the page was open: the file has another name now. */
function Outdated() {
  return (
    <section class="page">
      <Empty title="A new version is available">
        <button class="button primary" onClick={() => location.reload()}>
          Reload
        </button>
      </Empty>
    </section>
  );
}

function Nowhere() {
  return (
    <section class="page">
      <h1>Page not found</h1>
      <p class="muted">
        The link may belong to another version. <a href="#/sessions">Go to sessions</a>.
      </p>
    </section>
  );
}
