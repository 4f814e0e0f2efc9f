// First-run guide: shown when a browser first opens an empty journal, until it is dismissed.
import { computed, signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { get, me } from "../api";
import { useResource } from "../live/use_resource";
import { hrefTo, navigate } from "../route";
import type { AlertsOut, BudgetsOut, IncidentPage, SessionPage } from "../wire";
import { Command, WaysIn, tryCommand } from "./command";
import { Icon } from "./icons";

const KEY = "rung.guide";
const state = signal<string | null>(load());

function load(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null; // storage is disabled: the guide lasts as long as this page
  }
}

function store(value: "open" | "dismissed"): void {
  state.value = value;
  try {
    localStorage.setItem(KEY, value);
  } catch {
    // storage is disabled
  }
}

export function openGuide(): void {
  store("open");
  navigate(["sessions"]);
}

/** Whether the guide is on the page of sessions. */
export const isGuideOpen = computed(() => state.value === "open");

/** Shows the guide if it is open, or if there is nothing in the journal and nobody dismissed it. */
export function Guide({ isEmpty }: { isEmpty: boolean }) {
  useEffect(() => {
    if (isEmpty && state.peek() === null) store("open");
  }, [isEmpty]);
  return isGuideOpen.value ? <Steps /> : null;
}

function Steps() {
  const load = <T,>(path: string, query: Record<string, string | number | boolean> = {}) =>
    useResource(`guide ${path}`, (signal) => get<T>(path, query, signal), () => true).data;
  const sessions = load<SessionPage>("sessions", { limit: 1 });
  const recovered = load<IncidentPage>("incidents", { status: "recovered", limit: 1 });
  const budgets = load<BudgetsOut>("budgets");
  const alerts = load<AlertsOut>("alerts");
  const incident = recovered?.items[0];
  return (
    <section class="card guide" aria-label="First steps">
      <header>
        <h2>First steps</h2>
        <button class="button plain tiny" onClick={() => store("dismissed")} aria-label="Dismiss the guide"><Icon name="close" size={15} /></button>
      </header>
      <ol class="card-body">
        <Step title="See a failure recover" isDone={(recovered?.total ?? 0) > 0}>
          <p>This command fails once, as an overloaded provider does. Rung repeats it. Run it in a terminal on {me.value?.journal.includes("://") ? "any machine with this journal" : "this machine"}:</p>
          <Command text={tryCommand()} />
        </Step>
        <Step title="Read its incident" isDone={false} isOpen={incident !== undefined}>
          <p>
            {incident ? <><a href={hrefTo(["incidents", incident.id])}>Open the incident</a> to see</> : "The incident shows"} the failure, why Rung decided as it did, and what each attempt cost.
          </p>
        </Step>
        <Step title="Connect your agent" isDone={(sessions?.total ?? 0) > 1}>
          <WaysIn />
        </Step>
        <Step title="Set a budget" isDone={(budgets?.items.length ?? 0) > 0}>
          <p><a href={hrefTo(["budgets"])}>Budgets</a> stop recoveries that would cost more than you allow.</p>
        </Step>
        <Step title="Be told when something is wrong" isDone={(alerts?.rules.length ?? 0) > 0}>
          <p><a href={hrefTo(["alerts"])}>Alerts</a> notify Slack, Teams, PagerDuty, a webhook or a command.</p>
        </Step>
      </ol>
      <p class="card-body quiet small">Press <kbd>?</kbd> for keyboard shortcuts. The guide can be opened again from there.</p>
    </section>
  );
}

function Step({ title, isDone, isOpen = true, children }: { title: string; isDone: boolean; isOpen?: boolean; children: ComponentChildren }) {
  return (
    <li class={isDone ? "done" : ""}>
      <h3>
        {title}
        {isDone ? <span class="badge recovered">done</span> : null}
      </h3>
      {isDone && isOpen ? null : children}
    </li>
  );
}
