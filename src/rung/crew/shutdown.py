"""The conductor's own end, in strict order: whatever it dies of half-way, a successor finds what it needs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rung.core.crew.contract import ASKS, CONDUCTOR, ENDED_WITH_US, TERMINAL, MessageType, TaskState
from rung.crew.worker_supervision import save_work

if TYPE_CHECKING:
    from rung.crew.context import ConductorContext

HANDOFF = "HANDOFF.md"
MEMORY = "MEMORY.md"


def end(crew: ConductorContext, why: str, *, to: TaskState = TaskState.CONTEXT_RECOVERY) -> None:
    """Hand over to a successor (`context_recovery`), or stop for good (`exit_requested`).

    First what is known is written down; then the workers are marked, and only then signalled, because one that
    guards its own exit would else refuse to end; last comes the state that has the watchdog act.
    """
    crew.write(HANDOFF, handoff(crew, why))
    crew.write(MEMORY, memory(crew))
    for task in crew.table.claimed_tasks():
        saved = save_work(crew, task, "the conductor ends")
        body = f"EXITED: the conductor ends ({why}). Saved: {saved}"
        crew.table.reply(task, TaskState.EXITED, body, MessageType.SYSTEM, note=f"{ENDED_WITH_US} {why}")
    for process in crew.table.processes():
        crew.terminate(process.task_id)
    crew.table.post_message(CONDUCTOR, CONDUCTOR, f"HANDOFF: {why}. See {crew.runtime / HANDOFF}", MessageType.HANDOFF)
    crew.table.heartbeat_self(CONDUCTOR, to)


def handoff(crew: ConductorContext, why: str) -> str:
    """What a successor has to know."""
    rows = crew.table.tasks()
    active = [row for row in rows if row.state not in (*TERMINAL, TaskState.WATCHING)]
    lines = [f"- {row.task_id}: {row.state}, {row.worked_by or 'nobody'}, {row.title or ''}" for row in active]
    waiting = sum(row.state is TaskState.WATCHING for row in rows)
    done = sum(row.state is TaskState.COMPLETE for row in rows)
    asks = [f"- {row.task_id}: {row.note}" for row in rows if row.note.startswith(ASKS)]
    return (
        f"# Handoff of the conductor\n\n- Why: {why}\n- When: {time.strftime('%F %T', time.gmtime(crew.now()))} UTC\n"
        f"- Done: {done}, waiting: {waiting}, under way: {len(active)}, of {len(rows)}\n"
        f"- Paused: {crew.table.get_fact('paused') or 'no'}; halted: {crew.table.get_fact('halted') or 'no'}\n\n"
        "## Under way\n\n"
        + ("\n".join(lines) or "nothing")
        + "\n\n## Asked of a person\n\n"
        + ("\n".join(asks) or "nothing")
        + "\n\nThe table is right where this file differs from it.\n"
    )


def memory(crew: ConductorContext) -> str:
    """Where everything is."""
    processes = "\n".join(f"- {one.task_id}: session {one.session_id}" for one in crew.table.processes())
    return (
        f"# Where things are\n\n- The table: {crew.place}\n- The plan: in the table's facts, `plan`\n"
        f"- The handoff: {crew.runtime / HANDOFF}\n\n## Processes\n\n{processes or 'none'}\n"
    )
