import { useEffect, useState } from "preact/hooks";
import { ApiError, call, get, deniedReason, me, post } from "../api";
import { useResource } from "../live/use_resource";
import { inbox, notificationsEnabled, loadInbox, setNotificationsEnabled } from "../live/inbox";
import { hrefTo } from "../route";
import { AskForm } from "../ui/ask";
import { Command, quote } from "../ui/command";
import { EmptyState, LoadError, Loading } from "../ui/empty";
import { Icon, type IconName } from "../ui/icons";
import { Until, WakeButton, wakePath } from "../ui/parked";
import { Ago } from "../ui/parts";
import { StopButton } from "../ui/stop";
import { showError, showToast } from "../ui/toast";
import type { InboxItem, NotificationsIn } from "../wire";

const ITEM_TYPES: Record<InboxItem["kind"], { icon: IconName; tone: string; label: string }> = {
  ask: { icon: "help", tone: "waiting", label: "question" },
  task: { icon: "crew", tone: "waiting", label: "crew" },
  parked: { icon: "pause", tone: "parked", label: "parked" },
  blocked: { icon: "stop", tone: "blocked", label: "blocked" },
  budget: { icon: "analytics", tone: "retrying", label: "budget" },
  crash: { icon: "close", tone: "failed", label: "crash" },
  group: { icon: "retry", tone: "failed", label: "regression" },
};

export default function Inbox() {
  const [error, setError] = useState<ApiError | null>(null);
  const load = () => {
    setError(null);
    loadInbox().catch((problem: unknown) => setError(problem instanceof ApiError ? problem : new ApiError(0, String(problem))));
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
        <LoadError error={error} retry={load} />
      ) : items === null ? (
        <Loading rows={5} />
      ) : items.length === 0 ? (
        <EmptyState title="Nothing needs your attention">
          <p>Questions, blocked work, budget alerts, hook crashes and regressions appear here. To let an agent ask you:</p>
          <Command text={`rung run --ask-service --journal ${quote(me.value?.journal || "rung.db")} -- my-agent`} />
          <p class="small">In Python: <code>ask=journal.operator_prompt()</code></p>
        </EmptyState>
      ) : (
        <ul class="inbox-items">
          {items.map((item) => (
            <Item key={item.id} item={item} reload={load} />
          ))}
        </ul>
      )}
      <NotificationSettings />
    </section>
  );
}

function Item({ item, reload }: { item: InboxItem; reload: () => void }) {
  const { icon, tone, label } = ITEM_TYPES[item.kind];
  return (
    <li class={`card inbox-item ${tone}`}>
      <span class="inbox-item-icon" aria-hidden="true"><Icon name={icon} /></span>
      <div class="inbox-item-body">
        <div class="inbox-item-head">
          <h2>{item.incident && item.parkedUntil ? <>Parked <Until at={item.parkedUntil} /></> : item.title}</h2>
          <span class="quiet small dot-separated">
            <span>{label}</span>
            {item.project ? <span>{item.project}</span> : null}
            <span><Ago at={item.at} /></span>
          </span>
        </div>
        {item.ask ? <AskForm ask={item.ask} onAnswered={reload} /> : <p class="muted wrap">{item.detail}</p>}
        {item.parkedUntil && !item.incident ? <p class="small">Closed <Until at={item.parkedUntil} /></p> : null}
        <div class="actions">
          {item.incident ? <a class="button tiny" href={hrefTo(["incidents", item.incident])}>Open incident</a> : null}
          {item.task ? <a class="button tiny" href={hrefTo(["crew", ...item.task.split("/")])}>Open task</a> : null}
          <WakeActions item={item} reload={reload} />
          <ItemActions item={item} reload={reload} />
        </div>
      </div>
    </li>
  );
}

/** Actions of a parked recovery, and of a crew's pool that is closed. */
function WakeActions({ item, reload }: { item: InboxItem; reload: () => void }) {
  if (item.kind === "parked" && item.incident) {
    return (
      <>
        <WakeButton path={wakePath(item.incident)} tiny onWoken={reload} />
        <StopButton incident={item.incident} tiny onStopped={reload} />
      </>
    );
  }
  const pool = poolOf(item);
  return pool ? <WakeButton path={`crews/${encodeURIComponent(item.project)}/wake`} body={{ pool }} tiny onWoken={reload} /> : null;
}

/** Returns the name of the item's pool, or null. The id is pool/CREW/POOL/STATE/SINCE, and the project is the crew. */
function poolOf(item: InboxItem): string | null {
  const prefix = `pool/${item.project}/`;
  return item.id.startsWith(prefix) ? item.id.slice(prefix.length).split("/").slice(0, -2).join("/") : null;
}

/** Actions of an inbox item other than answering a question. */
function ItemActions({ item, reload }: { item: InboxItem; reload: () => void }) {
  const denied = deniedReason("act");
  const actions = actionsFor(item);
  const run = async (path: string, confirmation: string) => {
    try {
      await post(path);
      showToast(confirmation);
      reload();
    } catch (error) {
      showError(error);
    }
  };
  return (
    <>
      {actions.map(({ label, path, confirmation }) => (
        <button key={label} class="button tiny" disabled={denied !== null} onClick={() => run(path, confirmation)}>{label}</button>
      ))}
      {actions.length > 0 && denied ? <span class="disabled-reason">{denied}</span> : null}
    </>
  );
}

function actionsFor(item: InboxItem): { label: string; path: string; confirmation: string }[] {
  if (item.kind === "group") {
    const [, project = "-", fingerprint = ""] = item.id.split("/"); // group/PROJECT/FINGERPRINT/WHEN
    const group = `groups/${encodeURIComponent(project)}/${encodeURIComponent(fingerprint)}`;
    return [
      { label: "Resolve", path: `${group}/resolve`, confirmation: "Resolved. It returns to the inbox if it recurs." },
      { label: "Snooze for 24 hours", path: `${group}/snooze`, confirmation: "Snoozed for 24 hours" },
    ];
  }
  return item.kind === "ask" ? [] : [{ label: "Acknowledge", path: `alerts/${encodeURIComponent(item.id)}/acknowledge`, confirmation: "Acknowledged" }];
}

function NotificationSettings() {
  return (
    <section class="card" aria-labelledby="notifications">
      <header><h2 id="notifications">Notifications</h2></header>
      <div class="card-body settings">
        <DesktopSetting />
        <WebhookSetting />
      </div>
    </section>
  );
}

function DesktopSetting() {
  const [problem, setProblem] = useState<string | null>(null);
  return (
    <div class="setting">
      <div>
        <h3>Desktop notifications</h3>
        <p class="muted small">Shown while the dashboard is open in any tab, including background tabs.</p>
        {problem ? <p class="error-text" role="alert">{problem}</p> : null}
      </div>
      <button class="button" aria-pressed={notificationsEnabled.value} onClick={() => void setNotificationsEnabled(!notificationsEnabled.value).then(setProblem)}>
        <Icon name="bell" size={16} /> {notificationsEnabled.value ? "On" : "Turn on"}
      </button>
    </div>
  );
}

function WebhookSetting() {
  const stored = useResource("notifications", (signal) => get<NotificationsIn>("notifications", {}, signal));
  const [address, setAddress] = useState<string | null>(null);
  const [error, setError] = useState<string | null>(null);
  const denied = deniedReason("admin");
  const save = async (event: Event) => {
    event.preventDefault();
    setError(null);
    try {
      await call("PUT", "notifications", { body: { webhook: address ?? "" } });
      showToast(address ? "Webhook saved" : "Webhook removed");
      stored.reload();
    } catch (error) {
      setError(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <div class="setting">
      <div>
        <h3>Webhook</h3>
        <p class="muted small">Receives a message in Slack's format for each item of the inbox. Leave empty to disable. For failure rates and cost, see <a href={hrefTo(["alerts"])}>Alerts</a>.</p>
        {error ? <p class="error-text" role="alert">{error}</p> : null}
        {denied ? <p class="disabled-reason">{denied}</p> : null}
      </div>
      <form onSubmit={save}>
        <input class="input" type="url" aria-label="Webhook URL" placeholder="https://" value={address ?? stored.data?.webhook ?? ""} disabled={denied !== null}
          onInput={(event) => setAddress(event.currentTarget.value)} />
        <button class="button" disabled={denied !== null || address === null}>Save</button>
      </form>
    </div>
  );
}
