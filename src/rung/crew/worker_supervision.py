"""Supervision of workers: evict dead, hung and looping workers, save their work and redispatch their tasks."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from rung.core.classify.evidence import clip
from rung.core.crew.contract import ASKS_PREFIX, CONDUCTOR, SHUTDOWN_PREFIX, MessageType, TaskState
from rung.core.crew.liveness import (
    UNHEALTHY,
    Liveness,
    LivenessSignals,
    LivenessThresholds,
    RestartLimits,
    WorkerRestart,
    check_liveness,
    restart_block_reason,
)
from rung.core.crew.pool import PARKED_PREFIX
from rung.crew.dispatch import DIED_UNCLAIMED, HALTED_KEY, missing_claim_reason, unclaimed_workers
from rung.crew.plan_sync import current_plan
from rung.crew.pool_control import absorb, exit_trouble, handover_trouble, observe_probes
from rung.crew.unsaved_changes import unsaved_changes
from rung.engine.process_identity import is_elsewhere
from rung.store.crew.briefing import briefing_of, last_handoff_message
from rung.store.crew.rows import SAVED_FACT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.crew.context import ConductorContext
    from rung.store.crew.rows import CrewMessageRow, TaskRow

DEATH_PREFIXES: Final = (Liveness.DEAD.value, DIED_UNCLAIMED)  # of the restart reasons that count as deaths


def supervise(crew: ConductorContext) -> int:
    """Check every worker once. Return how many were evicted."""
    evicted = 0
    reap(crew)
    observe_probes(crew)
    visible = {process.session_id for process in crew.table.processes() if not is_elsewhere(process.machine)}
    claimed = crew.table.claimed_tasks()
    crew.view = crew.view.read(crew.now(), _shortest_limit(crew, claimed), crew.settings.poll)
    for process, task in unclaimed_workers(crew):
        with crew.isolated(task):
            reason = missing_claim_reason(crew, process) if crew.is_usable(task) else ""
            if reason:
                _restart_unclaimed(crew, task, reason)
                evicted += 1
    crew.loop_states = {key: crew.loop_states[key] for key in map(_lease_key, claimed) if key in crew.loop_states}
    for task in filter(crew.is_usable, claimed):
        with crew.isolated(task):
            is_ours = task.session_id in visible
            verdict = _check_worker(crew, task, is_ours=is_ours)
            if verdict in UNHEALTHY:
                evicted += _evict(crew, task, verdict, is_ours=is_ours)
    return evicted


def _shortest_limit(crew: ConductorContext, tasks: Sequence[TaskRow]) -> float:
    """Return the shortest time after which any worker would be evicted."""
    settings = crew.settings
    limits = (settings.stale, settings.hung, settings.exit_within, settings.claim_within)
    return min([*limits, *(task.stale_after for task in tasks if task.stale_after)])


def reap(crew: ConductorContext) -> None:
    """End the workers of finished tasks: a conductor may have died after it marked a task and before the signal."""
    for task_id in crew.table.orphaned_tasks():
        task = crew.table.task(task_id)
        if task is None or not _is_exiting(crew, task):
            crew.terminate(task_id)


def _is_exiting(crew: ConductorContext, task: TaskRow) -> bool:
    """Return whether the worker completed the task within the grace period and is about to exit by itself."""
    is_recent = (task.heartbeat_age or 0.0) < crew.settings.grace
    may_run = crew.runs_elsewhere(task.task_id) or crew.processes.alive(task.task_id)
    return task.state is TaskState.COMPLETE and is_recent and may_run


def _check_worker(crew: ConductorContext, task: TaskRow, *, is_ours: bool) -> Liveness:
    """Return the liveness of the task's worker. Its process is seen only if this crew launched it on this machine."""
    settings = crew.settings
    signals = LivenessSignals(
        process_alive=crew.processes.alive(task.task_id) if is_ours else None,
        heartbeat_age=crew.view.silence(task.heartbeat_age),
        progress_age=crew.view.silence(task.progress_age),
        state_age=crew.view.silence(task.state_age),
        is_looping=_is_looping(crew, task),
        waits_for_person=task.note.startswith(ASKS_PREFIX),
        state=task.state,
    )
    return check_liveness(
        signals,
        LivenessThresholds(
            stale=task.stale_after or settings.stale,
            hung=settings.hung,
            slow=settings.hung / 2,
            exit_within=settings.exit_within,
        ),
    )


def _is_looping(crew: ConductorContext, task: TaskRow) -> bool:
    """Run the loop detectors on the task's progress, if the worker reports it as steps in JSON."""
    if not task.progress.startswith("{"):
        return False
    from rung.core.domain.failures import Kind
    from rung.detectors.finding import LoopStage
    from rung.detectors.session_monitor import SessionMonitor
    from rung.detectors.step import step_from

    key = _lease_key(task)
    monitor, last_progress, is_looping = crew.loop_states.get(key) or (SessionMonitor(), None, False)
    if last_progress == task.progress:
        return bool(is_looping)
    try:
        finding = monitor.check(step_from(json.loads(task.progress or "{}")))
    except ValueError:
        return False
    is_looping = finding is not None and finding.kind is Kind.LOOP_DETECTED and finding.stage is LoopStage.FORCE_DONE
    crew.loop_states[key] = (monitor, task.progress, is_looping)
    return is_looping


def _lease_key(task: TaskRow) -> str:
    return f"{task.task_id}/{task.generation}"


def _evict(crew: ConductorContext, task: TaskRow, verdict: Liveness, *, is_ours: bool) -> int:
    """Check the worker again, save its work and mark the task `exited`. Return 1 if it was evicted, else 0.

    The process is signalled later, by `redispatch`: a worker that guards its exit ends only once its task is marked.
    """
    fresh = crew.table.task(task.task_id)
    if fresh is None or fresh.state != task.state or fresh.generation != task.generation:
        return 0
    if _check_worker(crew, fresh, is_ours=is_ours) is not verdict:
        return 0
    saved = save_partial_work(crew, fresh, verdict)
    body = f"EVICTED ({verdict}): worker {fresh.worked_by or fresh.session_id}. Saved work: {saved}"
    note = fresh.note if fresh.note.startswith(PARKED_PREFIX) else verdict.value
    if not crew.table.reply(fresh, TaskState.EXITED, body, MessageType.SYSTEM, note=note):
        return 0
    crew.log(f"{task.task_id}: worker is {verdict}, evicted")
    return 1


def save_partial_work(crew: ConductorContext, task: TaskRow, reason: str) -> str:
    """Save the diff of the task's folder, its progress and its worker's last output. Return the report's path."""
    folder, diff = unsaved_changes(crew, task)
    name = f"partial/{task.task_id}-{task.generation}"
    if diff:
        crew.write(f"{name}.diff", diff)
    output = clip(crew.processes.output(task.task_id), 4_096)
    text = (
        f"# {task.task_id}, generation {task.generation}: {reason}\n\n- session: {task.session_id}\n"
        f"- state: {task.state}\n- progress: {task.progress or 'none reported'}\n"
        f"- folder: {folder or 'unknown'}\n- diff: {name + '.diff' if diff else 'empty, or not a git work tree'}\n\n"
        f"## Last output\n\n{output}\n"
    )
    report = str(crew.write(f"{name}.md", text))
    files = [report, str(crew.runtime_dir / f"{name}.diff")] if diff else [report]
    crew.table.set_fact(SAVED_FACT + task.task_id, "\n".join(files))
    return report


def redispatch(crew: ConductorContext, task: TaskRow) -> None:
    """Open a task whose worker is gone for a new worker, if the restart limits allow it; else escalate it.

    A worker that left because of its pool is not lost: nothing is counted, and the task waits for the pool.
    """
    code = crew.end_process(task.task_id)
    message = last_handoff_message(crew.table, task)
    is_lost = message is None or not message.message.strip()
    # A shutdown of the conductor ends healthy workers. Counted, a crew of eight would exceed every limit at once.
    is_uncounted = task.note.startswith((SHUTDOWN_PREFIX, PARKED_PREFIX)) or _left_for_pool(crew, task, message, code)
    crew.record_exit(task.task_id, code)  # after the pool has closed: this makes room for another worker
    if not is_uncounted and not _may_restart(crew, task, task.note or "its worker left", is_lost=is_lost):
        return
    briefing = briefing_of(crew.table, task)
    state = TaskState.WATCHING if briefing.starts_over else TaskState.FIX_PROPOSED
    redispatches = task.redispatches + (not is_uncounted)
    crew.table.reply(task, state, briefing.body(), MessageType.INSTRUCTION, redispatches=redispatches, note="")


def _left_for_pool(crew: ConductorContext, task: TaskRow, handover: CrewMessageRow | None, code: int | None) -> bool:
    """Return whether the worker left because of its pool: by its hand-over, or by its exit code and last output."""
    if handover is not None:
        return absorb(crew, task, handover_trouble(handover, crew.now()))
    return task.note == Liveness.DEAD.value and absorb(crew, task, exit_trouble(crew, task.task_id, code))


def _restart_unclaimed(crew: ConductorContext, task: TaskRow, reason: str) -> None:
    """End a worker that never claimed its task. There is no work to save; `dispatch` launches the next worker."""
    code = crew.end_process(task.task_id)
    is_absorbed = reason == DIED_UNCLAIMED and absorb(crew, task, exit_trouble(crew, task.task_id, code))
    crew.record_exit(task.task_id, code)
    if not is_absorbed and _may_restart(crew, task, f"{reason} ({_likely_cause(crew, task)})"):
        crew.table.update_columns(task.task_id, redispatches=task.redispatches + 1)


def _likely_cause(crew: ConductorContext, task: TaskRow) -> str:
    """Return the likely reason why a worker never claimed its task."""
    if ("worker", "run") in pairwise(task.command or crew.settings.command or ()):
        return f"see its output in {crew.runtime_dir / 'logs' / task.task_id}.log"
    return "a command that does not claim the task itself needs `rung worker run --check … --` before it"


def _limits(crew: ConductorContext, task: TaskRow) -> RestartLimits:
    """Return the restart limits; a task of the plan can have its own limit of new workers."""
    plan = current_plan(crew.table)
    planned = plan.task(task.task_id) if plan is not None else None
    if planned is None or planned.redispatches is None:
        return crew.settings.limits
    return replace(crew.settings.limits, redispatches=planned.redispatches)


def _may_restart(crew: ConductorContext, task: TaskRow, reason: str, *, is_lost: bool = True) -> bool:
    """Return whether the restart limits allow another worker. If not, escalate the task.

    If a limit of the whole crew is exceeded, dispatching is halted too. A worker that wrote a hand-over is not lost:
    only the limit of its own task counts.
    """
    limits, now = _limits(crew, task), crew.now()
    restarts = [
        WorkerRestart(task_id=one.task_id, at=now - one.age, is_death=one.why.startswith(DEATH_PREFIXES))
        for one in (crew.table.restarts(limits.window_seconds) if is_lost else ())
    ]
    block_reason = restart_block_reason(task.redispatches, restarts, now, limits)
    if not block_reason:
        if is_lost:
            crew.table.record_restart(task.task_id, reason)
        return True
    if task.redispatches < limits.redispatches:
        crew.table.set_fact(HALTED_KEY, block_reason)
        crew.table.post_message(
            CONDUCTOR, CONDUCTOR, f"HALTED: {block_reason}; no more tasks are dispatched", MessageType.EMERGENCY
        )
    crew.escalate(task, f"{reason}; {block_reason}")
    return False
