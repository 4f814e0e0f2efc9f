"""Looks after the workers: dead, hung, looping; checked twice, saved first, begun again within limits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from rung.core.classify.evidence import clip
from rung.core.crew.contract import ASKS, CONDUCTOR, ENDED_WITH_US, MessageType, TaskState
from rung.core.crew.handoff import FIRST, Handoff, HandoffKind, handoff_kind
from rung.core.crew.liveness import TROUBLE, Liveness, LivenessSignals, LivenessThresholds, look, stop_restarting
from rung.crew.context import git_output
from rung.crew.dispatch import HALTED, not_claimed, waiting_for_claim

if TYPE_CHECKING:
    from rung.crew.context import ConductorContext
    from rung.store.crew.rows import TaskRow

DIED: Final = ("dead", "it died")  # how a reason begins that tells of a death


def supervise(crew: ConductorContext) -> int:
    """One look at everybody; how many had to be taken away from their work."""
    taken = 0
    reap(crew)
    known = crew.table.running_sessions()
    for process, task in waiting_for_claim(crew):
        why = not_claimed(crew, process)
        if why:
            _never_claimed(crew, task, why)
            taken += 1
    claimed = crew.table.claimed_tasks()
    crew.loops = {key: crew.loops[key] for key in map(_whose, claimed) if key in crew.loops}
    for task in claimed:
        ours = known.get(task.task_id) == task.session_id
        verdict = _verdict(crew, task, ours=ours)
        if verdict in TROUBLE:
            taken += _evict(crew, task, verdict, ours=ours)
    return taken


def reap(crew: ConductorContext) -> None:
    """Workers of tasks that have ended: a conductor may have died between the mark and the signal."""
    for task_id in crew.table.orphaned_tasks():
        task = crew.table.task(task_id)
        if task is None or not _leaving(crew, task):
            crew.terminate(task_id)


def _leaving(crew: ConductorContext, task: TaskRow) -> bool:
    """Has it just completed its task, and is on its way out?"""
    just_now = (task.heartbeat_age or 0.0) < crew.settings.grace
    return task.state is TaskState.COMPLETE and just_now and crew.processes.alive(task.task_id)


def _verdict(crew: ConductorContext, task: TaskRow, *, ours: bool) -> Liveness:
    settings = crew.settings
    signals = LivenessSignals(
        process_alive=crew.processes.alive(task.task_id) if ours else None,
        heartbeat_age=task.heartbeat_age,
        progress_age=task.progress_age,
        looping=_looping(crew, task),
        asked=task.note.startswith(ASKS),
        state=task.state,
    )
    return look(
        signals,
        LivenessThresholds(stale=task.stale_after or settings.stale, hung=settings.hung, slow=settings.hung / 2),
    )


def _looping(crew: ConductorContext, task: TaskRow) -> bool:
    """Steps that a worker tells of as its progress, numbered, are shown to the detectors."""
    if not task.progress.startswith("{"):
        return False
    from rung.core.domain.failures import Kind
    from rung.detectors.finding import LoopStage
    from rung.detectors.session_monitor import SessionMonitor
    from rung.detectors.step import step_from

    key = _whose(task)
    watch, last, looping = crew.loops.get(key) or (SessionMonitor(), None, False)
    if last == task.progress:
        return bool(looping)
    try:
        finding = watch.check(step_from(json.loads(task.progress or "{}")))
    except ValueError:
        return False
    looping = finding is not None and finding.kind is Kind.LOOP_DETECTED and finding.stage is LoopStage.FORCE_DONE
    crew.loops[key] = (watch, task.progress, looping)
    return looping


def _whose(task: TaskRow) -> str:
    return f"{task.task_id}/{task.generation}"


def _evict(crew: ConductorContext, task: TaskRow, verdict: Liveness, *, ours: bool) -> int:
    """Checked again, its work saved, marked `exited`; only then is anybody signalled."""
    fresh = crew.table.task(task.task_id)
    if fresh is None or fresh.state != task.state or fresh.generation != task.generation:
        return 0
    if _verdict(crew, fresh, ours=ours) is not verdict:
        return 0
    saved = save_work(crew, fresh, verdict)
    body = f"TAKEN AWAY ({verdict}): no sign of {fresh.worked_by or fresh.session_id}. Saved: {saved}"
    if not crew.table.reply(fresh, TaskState.EXITED, body, MessageType.SYSTEM, note=verdict.value):
        return 0
    crew.log(f"{task.task_id}: {verdict}, taken away")
    return 1


def save_work(crew: ConductorContext, task: TaskRow, verdict: str) -> str:
    """What there is of its work: the differences in its directory, its last words, what it said of its progress."""
    difference = git_output(task.workdir, "diff", "HEAD") if task.workdir else ""
    name = f"partial/{task.task_id}-{task.generation}"
    if difference:
        crew.write(f"{name}.diff", difference)
    words = clip(crew.processes.output(task.task_id), 4_096)
    text = (
        f"# {task.task_id}, generation {task.generation}: {verdict}\n\n- session: {task.session_id}\n"
        f"- state: {task.state}\n- progress: {task.progress or 'nothing was said'}\n"
        f"- differences: {name + '.diff' if difference else 'none, or no git'}\n\n## Last output\n\n{words}\n"
    )
    return str(crew.write(f"{name}.md", text))


def redispatch(crew: ConductorContext, task: TaskRow) -> None:
    """A task whose worker is gone: a successor, as long as the limits allow; else a person."""
    crew.terminate(task.task_id)
    handoff = next(reversed(crew.table.messages(task.task_id, types=(MessageType.HANDOFF,))), None)
    left = Handoff.parse(handoff.message) if handoff is not None and handoff.from_session == task.session_id else None
    blameless = task.note.startswith(ENDED_WITH_US)  # counts against nobody: a crew of eight would spend every limit
    if not blameless and not _may_begin_again(crew, task, task.note or "its worker left", lost=left is None):
        return
    kind = handoff_kind(left)
    if kind is HandoffKind.CRASH and not task.progress:
        to, body = TaskState.WATCHING, f"INSTRUCTION: {task.instruction_path or task.title}\nBegin from the start."
    else:
        to, body = TaskState.FIX_PROPOSED, _to_successor(crew, task, kind)
    again = task.redispatches + (not blameless)
    crew.table.reply(task, to, body, MessageType.INSTRUCTION, redispatches=again, note="")


def _never_claimed(crew: ConductorContext, task: TaskRow, why: str) -> None:
    """A worker that never claimed: nothing to save, nothing to hand over."""
    crew.terminate(task.task_id)
    if _may_begin_again(crew, task, why):
        crew.table.update_columns(task.task_id, redispatches=task.redispatches + 1)


def _may_begin_again(crew: ConductorContext, task: TaskRow, why: str, *, lost: bool = True) -> bool:
    """Within the limits; beyond those of the crew nothing more is given out, and a person is told.

    A worker that handed over in good order was not lost: only its task's own limit counts for it.
    """
    limits, now = crew.settings.limits, crew.now()
    before = crew.table.restarts(limits.longest) if lost else []
    restarts = [now - one.age for one in before]
    deaths = [now - one.age for one in before if one.why.startswith(DIED)]
    reason = stop_restarting(task.redispatches, restarts, deaths, now, limits)
    if not reason:
        if lost:
            crew.table.record_restart(task.task_id, why)
        return True
    if task.redispatches < limits.redispatches:
        crew.table.set_fact(HALTED, reason)
        crew.table.post_message(
            CONDUCTOR, CONDUCTOR, f"HALTED: {reason}; nothing more is given out", MessageType.EMERGENCY
        )
    crew.escalate(task, f"{why}; {reason}")
    return False


def _to_successor(crew: ConductorContext, task: TaskRow, kind: HandoffKind) -> str:
    where = crew.runtime / "partial" / f"{task.task_id}-{task.generation}.md"
    saved = f" What was saved of its work: {where}." if where.exists() else ""
    return f"HANDOFF ({kind}): you take over {task.task_id} from {task.worked_by or 'a lost worker'}. First: {FIRST[kind]}.{saved}"
