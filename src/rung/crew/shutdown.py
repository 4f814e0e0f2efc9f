"""Shutdown of a conductor, in a fixed order: if it dies half-way, the next conductor finds consistent state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.core.crew.contract import CONDUCTOR, SHUTDOWN_PREFIX, MessageType, TaskState
from rung.crew.protocol_files import HANDOFF_FILE, MEMORY_FILE, handoff_text, memory_text
from rung.crew.worker_supervision import save_partial_work

if TYPE_CHECKING:
    from rung.crew.context import ConductorContext


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
