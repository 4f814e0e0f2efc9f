"""Shutdown of a conductor, in a fixed order: if it dies half-way, the next conductor finds consistent state."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from rung.core.crew.contract import ASKS_PREFIX, CONDUCTOR, SHUTDOWN_PREFIX, TERMINAL, MessageType, TaskState
from rung.crew.dispatch import HALTED_KEY, PAUSED_KEY
from rung.crew.plan_sync import PLAN_KEY
from rung.crew.worker_supervision import save_partial_work

if TYPE_CHECKING:
    from rung.crew.context import ConductorContext

HANDOFF_FILE: Final = "HANDOFF.md"
MEMORY_FILE: Final = "MEMORY.md"


def shut_down(crew: ConductorContext, reason: str, *, to: TaskState = TaskState.CONTEXT_RECOVERY) -> None:
    """Hand over to another conductor (`context_recovery`) or stop for good (`exit_requested`).

    The order: write the hand-over files, mark the tasks, signal the workers, set the conductor's own state. Tasks
    are marked before their workers are signalled, because a worker that guards its exit refuses to end otherwise.
    The own state comes last, because the watchdog reacts to it.
    """
    crew.write(HANDOFF_FILE, handoff_text(crew, reason))
    crew.write(MEMORY_FILE, memory_text(crew))
    for task in crew.table.claimed_tasks():
        saved = save_partial_work(crew, task, "the conductor shuts down")
        body = f"EXITED: the conductor shuts down ({reason}). Saved work: {saved}"
        crew.table.reply(task, TaskState.EXITED, body, MessageType.SYSTEM, note=f"{SHUTDOWN_PREFIX} {reason}")
    for process in crew.table.processes():
        crew.terminate(process.task_id)
    crew.table.post_message(
        CONDUCTOR, CONDUCTOR, f"HANDOFF: {reason}. See {crew.runtime_dir / HANDOFF_FILE}", MessageType.HANDOFF
    )
    crew.table.heartbeat_self(CONDUCTOR, to)


def handoff_text(crew: ConductorContext, reason: str) -> str:
    """Return the state of the crew for the next conductor."""
    rows = crew.table.tasks()
    active = [row for row in rows if row.state not in (*TERMINAL, TaskState.WATCHING)]
    lines = [f"- {row.task_id}: {row.state}, {row.worked_by or 'no worker'}, {row.title or ''}" for row in active]
    waiting = sum(row.state is TaskState.WATCHING for row in rows)
    complete = sum(row.state is TaskState.COMPLETE for row in rows)
    questions = [f"- {row.task_id}: {row.note}" for row in rows if row.note.startswith(ASKS_PREFIX)]
    return (
        f"# Handoff of the conductor\n\n- Reason: {reason}\n"
        f"- Time: {time.strftime('%F %T', time.gmtime(crew.now()))} UTC\n"
        f"- Tasks: {complete} complete, {len(active)} active, {waiting} waiting, {len(rows)} in total\n"
        f"- Paused: {crew.table.get_fact(PAUSED_KEY) or 'no'}; halted: {crew.table.get_fact(HALTED_KEY) or 'no'}\n\n"
        "## Active tasks\n\n"
        + ("\n".join(lines) or "none")
        + "\n\n## Questions to a person\n\n"
        + ("\n".join(questions) or "none")
        + "\n\nWhere this file and the table differ, the table is right.\n"
    )


def memory_text(crew: ConductorContext) -> str:
    """Return where the crew's state is stored."""
    processes = "\n".join(f"- {one.task_id}: session {one.session_id}" for one in crew.table.processes())
    return (
        f"# Where the state is stored\n\n- Table: {crew.table_url}\n- Plan: in the table's facts, `{PLAN_KEY}`\n"
        f"- Hand-over: {crew.runtime_dir / HANDOFF_FILE}\n\n## Processes\n\n{processes or 'none'}\n"
    )
