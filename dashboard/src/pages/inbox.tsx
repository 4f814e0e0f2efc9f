import { useEffect, useState } from "preact/hooks";
import { ApiError, call, get, mayNot, post } from "../api";
import { useResource } from "../live/resource";
import { inbox, notifies, readInbox, setNotifies } from "../live/waiting";
import { link } from "../route";
import { Ask } from "../ui/ask";
import { Empty, Failed, Loading } from "../ui/empty";
import { Icon, type IconName } from "../ui/icons";
import { Ago } from "../ui/parts";
import { complain, say } from "../ui/toast";
import type { InboxItem, NotificationsIn } from "../wire";

const SORTS: Record<InboxItem["kind"], { icon: IconName; tone: string; label: string }> = {
  ask: { icon: "help", tone: "waiting", label: "question" },
  task: { icon: "crew", tone: "waiting", label: "crew" },
  blocked: { icon: "stop", tone: "blocked", label: "blocked" },
  budget: { icon: "analytics", tone: "retrying", label: "budget" },
  crash: { icon: "close", tone: "failed", label: "crash" },
  group: { icon: "again", tone: "failed", label: "regression" },
};

export default function Inbox() {
  const [error, setError] = useState<ApiError | null>(null);
  const load = () => {
    setError(null);
    readInbox().catch((problem: unknown) => setError(problem instanceof ApiError ? problem : new ApiError(0, String(problem))));
  };
  useEffect(load, []);
  const items = inbox.value;
  return (
    <section class="page narrow">
      <header>
        <div>
          <h1>Inbox</h1>
          <p class="muted small">Everything that needs a person.</p>
        </div>
      </header>
      {error && items === null ? (
        <Failed error={error} again={load} />
      ) : items === null ? (
        <Loading rows={5} />
      ) : items.length === 0 ? (
        <Empty title="Nothing needs your attention">
          <p>Questions, blocked work, budget alerts, hook crashes and regressions appear here.</p>
        </Empty>
      ) : (
        <ul class="waits">
          {items.map((item) => (
            <Item key={item.id} item={item} again={load} />
          ))}
        </ul>
      )}
      <Settings />
    </section>
  );
}

function Item({ item, again }: { item: InboxItem; again: () => void }) {
  const { icon, tone, label } = SORTS[item.kind];
  return (
    <li class={`card wait ${tone}`}>
      <span class="wait-mark" aria-hidden="true"><Icon name={icon} /></span>
      <div class="wait-body">
        <div class="wait-head">
          <h2>{item.title}</h2>
          <span class="quiet small dots">
            <span>{label}</span>
            {item.project ? <span>{item.project}</span> : null}
            <span><Ago at={item.at} /></span>
          </span>
        </div>
        {item.ask ? <Ask ask={item.ask} answered={again} /> : <p class="muted wrap">{item.detail}</p>}
        <div class="actions">
          {item.incident ? <a class="button tiny" href={link(["incidents", item.incident])}>Open incident</a> : null}
          {item.task ? <a class="button tiny" href={link(["crew", ...item.task.split("/")])}>Open task</a> : null}
          <Acts item={item} again={again} />
        </div>
      </div>
    </li>
  );
}

/** What can be done about it here, besides answering. */
function Acts({ item, again }: { item: InboxItem; again: () => void }) {
  const refused = mayNot("act");
  const does = acts(item);
  const act = async (path: string, said: string) => {
    try {
      await post(path);
      say(said);
      again();
    } catch (error) {
      complain(error);
    }
  };
  return (
    <>
      {does.map(({ label, path, said }) => (
        <button key={label} class="button tiny" disabled={refused !== null} onClick={() => act(path, said)}>{label}</button>
      ))}
      {does.length > 0 && refused ? <span class="why-not">{refused}</span> : null}
    </>
  );
}

function acts(item: InboxItem): { label: string; path: string; said: string }[] {
  if (item.kind === "group") {
    const [, project = "-", mark = ""] = item.id.split("/"); // group/PROJECT/FINGERPRINT/WHEN
    const group = `groups/${encodeURIComponent(project)}/${encodeURIComponent(mark)}`;
    return [
      { label: "Resolve", path: `${group}/resolve`, said: "Resolved. It returns to the inbox if it recurs." },
      { label: "Snooze for 24 hours", path: `${group}/snooze`, said: "Snoozed for 24 hours" },
    ];
  }
  return item.kind === "ask" ? [] : [{ label: "Acknowledge", path: `alerts/${encodeURIComponent(item.id)}/acknowledge`, said: "Acknowledged" }];
}

function Settings() {
  return (
    <section class="card" aria-labelledby="notifications">
      <header><h2 id="notifications">Notifications</h2></header>
      <div class="inside settings">
        <Desktop />
        <Webhook />
      </div>
    </section>
  );
}

function Desktop() {
  const [why, setWhy] = useState<string | null>(null);
  return (
    <div class="setting">
      <div>
        <h3>Desktop notifications</h3>
        <p class="muted small">Shown while the dashboard is open in any tab, including background tabs.</p>
        {why ? <p class="wrong" role="alert">{why}</p> : null}
      </div>
      <button class="button" aria-pressed={notifies.value} onClick={() => void setNotifies(!notifies.value).then(setWhy)}>
        <Icon name="bell" size={16} /> {notifies.value ? "On" : "Turn on"}
      </button>
    </div>
  );
}

function Webhook() {
  const stored = useResource("notifications", (signal) => get<NotificationsIn>("notifications", {}, signal));
  const [address, setAddress] = useState<string | null>(null);
  const [wrong, setWrong] = useState<string | null>(null);
  const refused = mayNot("admin");
  const save = async (event: Event) => {
    event.preventDefault();
    setWrong(null);
    try {
      await call("PUT", "notifications", { body: { webhook: address ?? "" } });
      say(address ? "Webhook saved" : "Webhook removed");
      stored.again();
    } catch (error) {
      setWrong(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <div class="setting">
      <div>
        <h3>Webhook</h3>
        <p class="muted small">Receives messages in Slack's format. Leave empty to disable.</p>
        {wrong ? <p class="wrong" role="alert">{wrong}</p> : null}
        {refused ? <p class="why-not">{refused}</p> : null}
      </div>
      <form onSubmit={save}>
        <input class="input" type="url" aria-label="Webhook URL" placeholder="https://" value={address ?? stored.data?.webhook ?? ""} disabled={refused !== null}
          onInput={(event) => setAddress(event.currentTarget.value)} />
        <button class="button" disabled={refused !== null || address === null}>Save</button>
      </form>
    </div>
  );
}
