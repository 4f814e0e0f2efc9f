// Components shared by the crew pages: task states, conductor and watchdog status, task actions.
import { useState } from "preact/hooks";
import { deniedReason, post } from "../api";
import { humanize } from "../format";
import type { ActionResult, CoordinatorOut, TaskDetail, TaskOut } from "../wire";
import { Ago } from "./parts";
import { showError, showToast } from "./toast";

const TONES: Record<string, string> = {
  working: "running", error: "failed", needs_review: "waiting", fix_proposed: "retrying", review_failed: "retrying",
  review_approved: "recovered", exit_requested: "partial", complete: "recovered", exited: "failed", confirmed: "recovered",
  reviewing: "running", context_recovery: "partial",
};

/** Task states, most urgent first, in the order of the service. */
export const STATES = ["error", "needs_review", "exit_requested", "fix_proposed", "review_failed", "review_approved", "working", "watching", "exited", "complete"];

export function StateBadge({ task }: { task: Pick<TaskOut, "state" | "outcome" | "needsPerson"> }) {
  if (task.needsPerson) return <span class="badge blocked">{task.outcome === "escalated" ? "escalated" : "needs input"}</span>;
  const label = task.state === "exited" && task.outcome ? task.outcome : task.state;
  return <span class={`badge ${TONES[task.state] ?? "succeeded"}`}>{humanize(label)}</span>;
}

export function Leader({ name, leader }: { name: string; leader: CoordinatorOut | null }) {
  const hasNoHeartbeat = leader?.heartbeatAt === null;
  const tone = !leader || leader.stale ? "failed" : hasNoHeartbeat ? "succeeded" : (TONES[leader.state] ?? "succeeded");
  return (
    <span class="leader">
      <span class="quiet small">{name}</span> <span class={`badge ${tone}`}>{!leader ? "not running" : hasNoHeartbeat ? "not started" : humanize(leader.state)}</span>{" "}
      {leader?.heartbeatAt ? <span class="quiet small"><Ago at={leader.heartbeatAt} /></span> : null}
    </span>
  );
}

type TaskAction = TaskDetail["can"][number];

const ACTIONS: Record<TaskAction, { label: string; confirmation?: string; defaultText?: string }> = {
  tell: { label: "Send message" },
  fix: { label: "Propose fix" },
  approve: { label: "Approve", defaultText: "approved by a person" },
  reject: { label: "Reject" },
  reset: { label: "Restart", confirmation: "Restart this task with a new worker?", defaultText: "restart from the beginning" },
  exit: { label: "Stop", confirmation: "Stop this task's worker? Its work so far is kept.", defaultText: "stopped by a person" },
};

/** The actions that the task's state allows. The service rejects an action if the state has changed. */
export function TaskActions({ task, reload }: { task: TaskDetail; reload: () => void }) {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const denied = deniedReason("act");
  const send = async (action: TaskAction) => {
    const { confirmation, defaultText } = ACTIONS[action];
    const message = text.trim() || defaultText || "";
    if (confirmation && !confirm(confirmation)) return;
    setBusy(true);
    try {
      const path = `crews/${encodeURIComponent(task.crew)}/tasks/${encodeURIComponent(task.id)}/${action}`;
      const result = await post<ActionResult>(path, { words: message }, { "If-Match": `"${task.version}"` });
      showToast(result.note ?? "");
      setText("");
    } catch (error) {
      showError(error);
    }
    setBusy(false);
    reload();
  };
  if (task.can.length === 0) return <p class="muted small">This task is complete and cannot change. Create a new task for later problems.</p>;
  return (
    <>
      <label class="field">
        <span>Message to the worker</span>
        <textarea class="textarea" rows={3} maxLength={20_000} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <div class="actions">
        {task.can.map((action) => (
          <button key={action} class={`button ${action === "approve" || action === "fix" || (action === "reset" && task.needsPerson) ? "primary" : ""} ${action === "exit" ? "danger" : ""}`}
            disabled={busy || denied !== null || (text.trim() === "" && ACTIONS[action].defaultText === undefined)} onClick={() => send(action)}>
            {ACTIONS[action].label}
          </button>
        ))}
        {denied ? <span class="disabled-reason">{denied}</span> : null}
      </div>
    </>
  );
}
