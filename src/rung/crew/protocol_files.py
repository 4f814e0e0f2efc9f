"""Files of the conductor's protocol, in the crew's runtime directory: hand-over, memory and learnings."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from rung.adapters.system.pid_file import read_pid
from rung.core.crew.contract import ASKS_PREFIX, TERMINAL, MessageType, TaskState
from rung.core.crew.learning import most_relevant
from rung.core.crew.pool import describe
from rung.crew.dispatch import HALTED_KEY, PAUSED_KEY
from rung.crew.plan_sync import PLAN_KEY, PLAN_PATH_KEY, current_plan
from rung.crew.subagent import QUESTION_FACT
from rung.store.crew.learnings import load_learnings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rung.crew.context import ConductorContext
    from rung.store.crew.rows import TaskRow

HANDOFF_FILE: Final = "temp/HANDOFFS/Conductor/handoff.md"
LEARNINGS_FILE: Final = "temp/conductor-learnings.log"
MEMORY_FILE: Final = "MEMORY.md"
_SHOWN_TASKS: Final = 200
_PENDING: Final = {
    TaskState.ERROR: "an error waits for an answer",
    TaskState.NEEDS_REVIEW: "a review was requested",
    TaskState.EXITED: "its worker is gone, and it was not given to another one yet",
    TaskState.EXIT_REQUESTED: "its worker was asked to stop",
}


def handoff_text(crew: ConductorContext, reason: str) -> str:
    """Return the state of the crew for the next conductor."""
    rows = crew.table.tasks()
    open_rows = [row for row in rows if not _has_ended(row)]
    sections = {
        "Tasks": (_task_line(row) for row in open_rows[:_SHOWN_TASKS]),
        "Pending events": _pending_events(crew, open_rows),
        "Decisions in progress": _decisions(crew, open_rows),
        "Learned": (f"- {one.line()}" for one in most_relevant(load_learnings(crew.table))),
    }
    complete = sum(row.state is TaskState.COMPLETE for row in rows)
    return (
        f"# Handoff of the conductor\n\n- Reason: {reason}\n"
        f"- Time: {time.strftime('%F %T', time.gmtime(crew.now()))} UTC\n"
        f"- Plan: {_plan_path(crew)}\n- Phase: {_phase(crew, open_rows)}\n"
        f"- Tasks: {complete} complete, {len(open_rows)} open, {len(rows)} in total\n"
        f"- Paused: {crew.table.get_fact(PAUSED_KEY) or 'no'}; halted: {crew.table.get_fact(HALTED_KEY) or 'no'}\n"
        + "".join(f"\n## {title}\n\n{_listed(lines)}\n" for title, lines in sections.items())
        + "\nWhere this file and the table differ, the table is right.\n"
    )


def memory_text(crew: ConductorContext) -> str:
    """Return where the state of the crew is, and which processes work on its tasks."""
    return (
        f"# Where the state is stored\n\n- Table: {crew.table_url}\n"
        f"- Plan: {_plan_path(crew)}\n"
        f"- Hand-over: {crew.runtime_dir / HANDOFF_FILE}\n- Learnings: {crew.runtime_dir / LEARNINGS_FILE}\n"
        f"- PID files: {crew.runtime_dir / 'pids'}\n\n## Active tasks\n\n{_listed(_process_lines(crew))}\n"
    )


def _process_lines(crew: ConductorContext) -> Iterable[str]:
    for process in crew.table.processes():
        pid = read_pid(crew.runtime_dir / "pids" / f"{process.task_id}.pid")
        shown = f"PID {pid.number}" if pid is not None else "no PID on this machine"
        yield f"- {process.task_id}: {shown}, session {process.session_id}"


def _plan_path(crew: ConductorContext) -> str:
    plan = current_plan(crew.table)
    if plan is None:
        return "none; the tasks were added one by one"
    path = crew.table.get_fact(PLAN_PATH_KEY) or "unknown path"
    return f"{path} (revision {plan.revision}; the plan in force is in the table's facts, `{PLAN_KEY}`)"


def _phase(crew: ConductorContext, open_rows: list[TaskRow]) -> str:
    """Return number and name of the first phase with an open task."""
    number = min((row.phase for row in open_rows), default=None)
    if number is None:
        return "none; every task has ended"
    plan = current_plan(crew.table)
    names = plan.settings.phases if plan is not None else ()
    return f"{number} ({names[number - 1]})" if 0 < number <= len(names) else str(number)


def _task_line(row: TaskRow) -> str:
    counts = f"{row.error_tries} errors, {row.redispatches} times given to another worker"
    progress = f"; progress: {row.progress}" if row.progress else ""
    return f"- {row.task_id} (phase {row.phase}): {row.state}, {row.worked_by or 'no worker'}; {counts}{progress}"


def _pending_events(crew: ConductorContext, open_rows: list[TaskRow]) -> Iterable[str]:
    for row in open_rows:
        if row.state in _PENDING and not row.note.startswith(ASKS_PREFIX):
            detail = row.last_error if row.state is TaskState.ERROR else row.note
            checkpoint = f" of checkpoint {row.checkpoint}" if row.state is TaskState.NEEDS_REVIEW else ""
            yield f"- {row.task_id}: {_PENDING[row.state]}{checkpoint}{f': {detail}' if detail else ''}"
    for row in crew.table.fallbacks():
        yield f"- the claim of {row.session_id or row.task_id} was blocked"


def _decisions(crew: ConductorContext, open_rows: list[TaskRow]) -> Iterable[str]:
    paused = crew.table.get_fact(PAUSED_KEY)
    if paused:
        yield f"- the plan is being changed: {paused}"
    waiting = {row.task_id for row in open_rows if row.state in (TaskState.ERROR, TaskState.NEEDS_REVIEW)}
    for name, value in crew.table.facts(QUESTION_FACT).items():
        question, _, task_id = name.partition("/")
        if value and task_id in waiting:
            yield f"- {task_id}: a helper was asked the question `{question}`"
    for row in open_rows:
        if row.note.startswith(ASKS_PREFIX):
            yield f"- {row.task_id}: a person was asked: {row.note.removeprefix(ASKS_PREFIX).strip()}"
        elif row.state in (TaskState.FIX_PROPOSED, TaskState.REVIEW_FAILED) and not row.open_for_claim:
            answers = crew.table.messages(row.task_id, types=(MessageType.FIX_PROPOSAL, MessageType.REJECTION))
            said = answers[-1].message.splitlines()[0] if answers else ""
            yield f"- {row.task_id}: answered, and its worker has not gone on yet: {said}"
    for name, pool in crew.table.pools().items():
        if not pool.is_open:
            yield f"- pool {name}: {describe(pool)}"


def _has_ended(row: TaskRow) -> bool:
    return row.state in TERMINAL and bool(row.outcome or row.state is TaskState.COMPLETE)


def _listed(lines: Iterable[str]) -> str:
    return "\n".join(lines) or "none"
