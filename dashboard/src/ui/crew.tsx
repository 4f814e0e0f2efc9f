// What the crew's pages share: how a state looks, who leads, and what a person says to a task.
import { useState } from "preact/hooks";
import { mayNot, post } from "../api";
import { words } from "../format";
import type { Done, LeaderOut, TaskDetail, TaskOut } from "../wire";
import { Ago } from "./parts";
import { complain, say } from "./toast";

const TONES: Record<string, string> = {
  working: "running", error: "failed", needs_review: "waiting", fix_proposed: "retrying", review_failed: "retrying",
  review_approved: "recovered", exit_requested: "partial", complete: "recovered", exited: "failed", confirmed: "recovered",
  reviewing: "running", context_recovery: "partial",
};

/** What there is, most urgent first; as the service sorts tasks. */
export const STATES = ["error", "needs_review", "exit_requested", "fix_proposed", "review_failed", "review_approved", "working", "watching", "exited", "complete"];

export function StateBadge({ task }: { task: Pick<TaskOut, "state" | "outcome" | "needsPerson"> }) {
  if (task.needsPerson) return <span class="badge blocked">{task.outcome === "escalated" ? "escalated" : "needs input"}</span>;
  const said = task.state === "exited" && task.outcome ? task.outcome : task.state;
  return <span class={`badge ${TONES[task.state] ?? "succeeded"}`}>{words(said)}</span>;
}

export function Leader({ name, leader }: { name: string; leader: LeaderOut | null }) {
  const never = leader?.heartbeatAt === null;
  const tone = !leader || leader.stale ? "failed" : never ? "succeeded" : (TONES[leader.state] ?? "succeeded");
  return (
    <span class="leader">
      <span class="quiet small">{name}</span> <span class={`badge ${tone}`}>{!leader ? "not running" : never ? "not started" : words(leader.state)}</span>{" "}
      {leader?.heartbeatAt ? <span class="quiet small"><Ago at={leader.heartbeatAt} /></span> : null}
    </span>
  );
}

type Act = TaskDetail["can"][number];

const ACTS: Record<Act, { label: string; sure?: string; empty?: string }> = {
  tell: { label: "Send message" },
  fix: { label: "Propose fix" },
  approve: { label: "Approve", empty: "approved by a person" },
  reject: { label: "Reject" },
  reset: { label: "Restart", sure: "Restart this task with a new worker?", empty: "restart from the beginning" },
  exit: { label: "Stop", sure: "Stop this task's worker? Its work so far is kept.", empty: "stopped by a person" },
};

/** The acts that are possible as the task is now; refused if it has moved on meanwhile. */
export function Say({ task, again }: { task: TaskDetail; again: () => void }) {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const refused = mayNot("act");
  const act = async (how: Act) => {
    const { sure, empty } = ACTS[how];
    const said = text.trim() || empty || "";
    if (sure && !confirm(sure)) return;
    setBusy(true);
    try {
      const path = `crews/${encodeURIComponent(task.crew)}/tasks/${encodeURIComponent(task.id)}/${how}`;
      const done = await post<Done>(path, { words: said }, { "If-Match": `"${task.version}"` });
      say(done.note ?? "");
      setText("");
    } catch (error) {
      complain(error);
    }
    setBusy(false);
    again();
  };
  if (task.can.length === 0) return <p class="muted small">This task is complete and cannot change. Create a new task for later problems.</p>;
  return (
    <>
      <label class="field">
        <span>Message to the worker</span>
        <textarea class="textarea" rows={3} maxLength={20_000} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <div class="actions">
        {task.can.map((how) => (
          <button key={how} class={`button ${how === "approve" || how === "fix" || (how === "reset" && task.needsPerson) ? "primary" : ""} ${how === "exit" ? "danger" : ""}`}
            disabled={busy || refused !== null || (text.trim() === "" && ACTS[how].empty === undefined)} onClick={() => act(how)}>
            {ACTS[how].label}
          </button>
        ))}
        {refused ? <span class="why-not">{refused}</span> : null}
      </div>
    </>
  );
}
