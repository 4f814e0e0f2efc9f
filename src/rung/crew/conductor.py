"""The conductor: one turn handles what there is, errors first, then looks after the workers and gives out work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.crew.contract import TaskState
from rung.crew import message_handlers, worker_supervision
from rung.crew.dispatch import HALTED, PAUSED, dispatch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rung.crew.context import ConductorContext
    from rung.store.crew.rows import TaskRow

MAX_HANDLER_FAILURES: Final = 3  # of one task; then it is escalated
HANDLERS: Final[Mapping[TaskState, Callable[[ConductorContext, TaskRow], None]]] = {
    TaskState.ERROR: message_handlers.answer_error,
    TaskState.NEEDS_REVIEW: message_handlers.answer_review,
    TaskState.COMPLETE: message_handlers.note_completion,
    TaskState.EXITED: worker_supervision.redispatch,
}


class Conductor:
    """Handles events until there is none; `turn` is all there is to it."""

    def __init__(self, crew: ConductorContext) -> None:
        self.crew = crew
        self._failed: dict[str, int] = {}

    def turn(self) -> int:
        """Everything that waits to be handled; then the workers, and new work. How much was done."""
        return self.handle() + self.care()

    def handle(self) -> int:
        """What workers wait for, the most urgent first; the table is read again after each."""
        done = 0
        while (task := self._next()) is not None:
            self._handle(task)
            done += 1
        for fallback in self.crew.table.fallbacks():
            message_handlers.answer_blocked_claim(self.crew, fallback)
            done += 1
        return done

    def care(self) -> int:
        """Who is in trouble, and who can begin."""
        return worker_supervision.supervise(self.crew) + dispatch(self.crew)

    def _next(self) -> TaskRow | None:
        """The most urgent row."""
        return next(iter(self.crew.table.needing_attention(1)), None)

    def _handle(self, task: TaskRow) -> None:
        """One event. A handler that breaks, or changes nothing, is told of; a task that it does so with thrice is a person's."""
        trouble = ""
        try:
            HANDLERS[task.state](self.crew, task)
        except Exception as error:  # noqa: BLE001  # one task must not end the crew
            trouble = f"the conductor could not handle it: {error!r}"
        after = self.crew.table.task(task.task_id)
        same = after is not None and (after.state, after.note, after.outcome) == (task.state, task.note, task.outcome)
        if not trouble and not same:
            self._failed.pop(task.task_id, None)
            return
        trouble = trouble or "the conductor's answers did not take effect"
        self.crew.log(f"{task.task_id}: {trouble}")
        times = self._failed[task.task_id] = self._failed.get(task.task_id, 0) + 1
        if times >= MAX_HANDLER_FAILURES:
            self.crew.escalate(task, trouble)

    def over(self) -> bool:
        """Is there nothing left that could be done? What waits for something given up is given up with it."""
        table = self.crew.table
        if table.needing_attention(1) or table.running_sessions() or table.claimed_tasks():
            return False
        if table.get_fact(PAUSED):
            return False
        if not table.get_fact(HALTED) and table.ready_tasks(1):
            return False
        for task in table.tasks(TaskState.WATCHING, TaskState.FIX_PROPOSED, TaskState.EXIT_REQUESTED):
            why = table.get_fact(HALTED) or "what it waits for was not done: " + ", ".join(task.depends_on)
            self.crew.escalate(task, why)
        return True

    def complete(self) -> bool:
        """Did every task end well?"""
        return all(row.state is TaskState.COMPLETE or row.outcome == "removed" for row in self.crew.table.tasks())
