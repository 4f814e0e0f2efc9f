import { get } from "../api";
import { fullDateTime, time, humanize } from "../format";
import { usePoll } from "../live/use_poll";
import { useResource } from "../live/use_resource";
import { hrefTo } from "../route";
import { TaskActions, StateBadge } from "../ui/crew";
import { LoadError, Loading } from "../ui/empty";
import { Ago, Facts } from "../ui/parts";
import type { CrewMessage, TaskDetail, WorkerProcessOut } from "../wire";

export default function Task({ path }: { path: readonly string[] }) {
  const [crew = "", id = ""] = path;
  const task = useResource(`${crew}/${id}`, (signal) => get<TaskDetail>(`crews/${encodeURIComponent(crew)}/tasks/${encodeURIComponent(id)}`, {}, signal));
  usePoll(task.reload);
  return (
    <section class="page">
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href={hrefTo(["crew"], { crew })}>Crew</a> <span aria-hidden="true">/</span>
        <span class="truncate">{id}</span>
      </nav>
      {task.data ? <Details task={task.data} reload={task.reload} /> : task.error ? <LoadError error={task.error} retry={task.reload} /> : <Loading rows={7} />}
    </section>
  );
}

function Details({ task, reload }: { task: TaskDetail; reload: () => void }) {
  const sessions = workerSessions(task);
  return (
    <>
      <div class="page-head">
        <div class="title">
          <h1>{task.id}</h1>
          <StateBadge task={task} />
        </div>
      </div>
      {task.title ? <p class="muted wrap">{task.title}</p> : null}
      {task.note ? <p class={`notice ${task.needsPerson ? "blocked" : "retrying"}`}>{task.note.replace(/^asks:\s*/, "")}</p> : null}
      <Facts
        items={[
          ["Worker", task.worker || "none"],
          ["Last heartbeat", task.heartbeatAt === null ? "never" : <span class={task.stale ? "overdue" : ""}><Ago at={task.heartbeatAt} /></span>],
          ["Progress", task.progress || "none reported"],
          ["Total errors", `${task.errorTries}`],
          ...(task.warnings > 0 ? [["Context warnings", `${task.warnings}`] as [string, string]] : []),
          ["Workers so far", `${sessions.length}`],
          ["Checkpoint", task.checkpoint === null ? "none" : `${task.checkpoint}${task.reviewCycles > 0 ? `, review cycle ${task.reviewCycles}` : ""}`],
          ["Depends on", task.dependsOn.length > 0 ? <TaskLinks crew={task.crew} ids={task.dependsOn} /> : "none"],
        ]}
      />
      <div class="columns">
        <div class="sidebar">
          <section class="card ask" aria-labelledby="task-actions">
            <header><h2 id="task-actions">Actions</h2></header>
            <div class="card-body task-actions"><TaskActions task={task} reload={reload} /></div>
          </section>
          <Messages messages={task.messages} sessions={sessions} />
        </div>
        <div class="sidebar">
          <History task={task} />
          <Workers workers={task.workers} sessions={sessions} />
          <Files task={task} />
        </div>
      </div>
    </>
  );
}

function TaskLinks({ crew, ids }: { crew: string; ids: readonly string[] }) {
  return <>{ids.map((id, n) => <span key={id}>{n > 0 ? ", " : ""}<a href={hrefTo(["crew", crew, id])}>{id}</a></span>)}</>;
}

const SENDERS: Record<string, string> = { "task-00": "conductor", souffleur: "watchdog", person: "person" };
const ALERT_TYPES = new Set(["error", "emergency", "rejection", "claim_blocked", "context_warning"]);

/** Sessions of the task's workers, the first one first: those that were launched, and those that only sent messages. */
function workerSessions(task: TaskDetail): string[] {
  const senders = task.messages.map((one) => one.sender).filter((sender) => !(sender in SENDERS));
  const launched = [...task.workers] // within one second, in the order of their messages
    .sort((one, other) => (one.launchedAt ?? 0) - (other.launchedAt ?? 0) || senders.indexOf(one.session) - senders.indexOf(other.session))
    .map((one) => one.session);
  return [...new Set([...launched, ...senders, ...(task.session ? [task.session] : [])])];
}

/** Name of a session: only a task with several workers numbers them. */
function workerName(session: string, sessions: readonly string[]): string {
  return sessions.length > 1 ? `worker ${sessions.indexOf(session) + 1}` : "worker";
}

function Messages({ messages, sessions }: { messages: CrewMessage[]; sessions: readonly string[] }) {
  return (
    <section class="card" aria-labelledby="messages">
      <header><h2 id="messages">Messages</h2></header>
      {messages.length === 0 ? <p class="card-body muted small">No messages yet.</p> : (
        <ol class="card-body messages">
          {[...messages].reverse().map((one) => (
            <li key={one.id} class={ALERT_TYPES.has(one.kind) ? "failed" : ""}>
              <p class="small dot-separated">
                <span><b class="wrap" title={one.sender}>{SENDERS[one.sender] ?? workerName(one.sender, sessions)}</b></span>
                <span class="quiet">{humanize(one.kind)}</span>
                {one.at !== null ? <time class="quiet" title={fullDateTime(one.at)}>{time(one.at)}</time> : null}
              </p>
              <pre class="output" tabIndex={0}>{one.text}</pre>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}

function History({ task }: { task: TaskDetail }) {
  if (task.story.length === 0) return null;
  return (
    <section class="card" aria-labelledby="history">
      <header><h2 id="history">Recovery history</h2></header>
      <ol class="card-body list">
        {task.story.map((one) => (
          <li key={one.n} class="small">
            <time class="quiet" title={fullDateTime(one.at)}>{time(one.at)}</time> <b>{one.subject}</b> <span class="muted wrap">{one.text}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}

function Workers({ workers, sessions }: { workers: WorkerProcessOut[]; sessions: readonly string[] }) {
  return (
    <section class="card" aria-labelledby="workers">
      <header><h2 id="workers">Workers</h2></header>
      <ul class="card-body list">
        {workers.length === 0 ? <li class="muted small">The conductor started no worker for this task.</li> : null}
        {workers.map((one) => (
          <li key={one.session} class="small">
            <b title={one.session}>{workerName(one.session, sessions)}</b> {one.launchedAt !== null ? <Ago at={one.launchedAt} /> : null}{" "}
            <span class="muted">{one.endedAt === null ? "running" : `ended${one.exitCode === null ? "" : ` with exit code ${one.exitCode}`}`}</span>
            <code class="block wrap quiet">{one.command.join(" ")}</code>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Files({ task }: { task: TaskDetail }) {
  const files: [string, string][] = [["Instructions", task.instructionPath], ["Working directory", task.workdir], ["Writes", task.writes.join(", ")], ["Report", task.reportPath], ["Last error", task.lastError]];
  const present = files.filter(([, value]) => value);
  if (present.length === 0) return null;
  return (
    <section class="card" aria-labelledby="details">
      <header><h2 id="details">Details</h2></header>
      <dl class="card-body outcome-fields">
        {present.map(([name, value]) => (
          <>
            <dt>{name}</dt>
            <dd class="wrap">{value}</dd>
          </>
        ))}
      </dl>
    </section>
  );
}
