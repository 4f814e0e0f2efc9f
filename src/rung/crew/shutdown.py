"""Shutdown of a conductor, in a fixed order: if it dies half-way, the next conductor finds consistent state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.crew.contract import CONDUCTOR, SHUTDOWN_PREFIX, STOPPED_KEY, MessageType, TaskState
from rung.crew.protocol_files import HANDOFF_FILE, MEMORY_FILE, handoff_text, memory_text
from rung.crew.worker_supervision import save_partial_work

if TYPE_CHECKING:
    from rung.crew.context import ConductorContext

_MARK_TRIES: Final = 5  # for tasks that change while they are marked


def shut_down(crew: ConductorContext, reason: str, *, to: TaskState = TaskState.CONTEXT_RECOVERY) -> None:
    """Hand over to another conductor (`context_recovery`) or stop for good (`exit_requested`).

    The order: write the hand-over files, mark the tasks, signal the workers, set the conductor's own state. Tasks
    are marked before their workers are signalled, because a worker that guards its exit refuses to end otherwise.
    The own state comes last, because the watchdog reacts to it.
    """
    crew.write(HANDOFF_FILE, handoff_text(crew, reason))
    crew.write(MEMORY_FILE, memory_text(crew))
    _mark_exited(crew, reason)
    for process in crew.table.processes():
        _mark_exited(crew, reason)  # while the others were ended, its worker may have claimed the task
        crew.terminate(process.task_id)
    crew.table.post_message(
        CONDUCTOR, CONDUCTOR, f"HANDOFF: {reason}. See {crew.runtime_dir / HANDOFF_FILE}", MessageType.HANDOFF
    )
    own = crew.table.task(CONDUCTOR)
    is_handed_over = own is not None and own.state is TaskState.CONTEXT_RECOVERY  # set in the table by a person
    state = TaskState.CONTEXT_RECOVERY if is_handed_over else to
    if state is TaskState.EXIT_REQUESTED:
        crew.table.set_fact(STOPPED_KEY, reason)
    crew.table.heartbeat_self(CONDUCTOR, state)


def _mark_exited(crew: ConductorContext, reason: str) -> None:
    """Mark every task that a worker has. A task that changes at that moment is marked in its new state."""
    for _ in range(_MARK_TRIES):
        claimed = crew.table.claimed_tasks()
        if not claimed:
            return
        for task in claimed:
            saved = save_partial_work(crew, task, "the conductor shuts down")
            body = f"EXITED: the conductor shuts down ({reason}). Saved work: {saved}"
            crew.table.reply(task, TaskState.EXITED, body, MessageType.SYSTEM, note=f"{SHUTDOWN_PREFIX} {reason}")
