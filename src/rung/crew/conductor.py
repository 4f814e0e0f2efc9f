"""The conductor: answers workers' errors and review requests, supervises workers and dispatches tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.crew.contract import CLAIMABLE, TaskState
from rung.core.domain.errors import StoreUnavailable
from rung.crew import message_handlers, worker_supervision
from rung.crew.blocked_claims import handle_blocked_claims
from rung.crew.dispatch import HALTED_KEY, PAUSED_KEY, dispatch
from rung.crew.instruction_writing import ensure_instructions
from rung.crew.plan_following import follow_plan
from rung.crew.pool_control import blocked_pools
from rung.crew.replanning import lift_pause, paused_by
from rung.crew.suspended_handlers import SuspendedHandlers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rung.crew.context import ConductorContext
    from rung.crew.subagent import Asking
    from rung.crew.suspended_handlers import SuspendedHandler
    from rung.store.crew.rows import TaskRow

MAX_HANDLER_FAILURES: Final = 3  # per task, in a row; then the task is escalated
HANDLERS: Final[Mapping[TaskState, Callable[[ConductorContext, TaskRow], Asking[None] | None]]] = {
    TaskState.ERROR: message_handlers.handle_error,
    TaskState.NEEDS_REVIEW: message_handlers.handle_review,
    TaskState.COMPLETE: message_handlers.handle_completion,
    TaskState.EXITED: message_handlers.handle_exit,
}


class Conductor:
    """Runs one crew, one turn at a time; the process around it calls `run_once` or its two halves."""

    def __init__(self, crew: ConductorContext) -> None:
        self.crew = crew
        self.suspended = SuspendedHandlers(crew)
        self._handler_failures: dict[str, int] = {}

    def run_once(self) -> int:
        """Handle all pending tasks, then supervise workers and dispatch tasks. Return the number of actions."""
        return self.handle_pending() + self.supervise_and_dispatch()

    def handle_pending(self) -> int:
        """Handle all tasks that wait for the conductor. Return how many were handled.

        Handlers whose helper has answered come first, then the most urgent task. The table is read again after each: a
        handler can change any row. A task whose handler waits for a helper is left for a later turn.
        """
        self.crew.table.connection.verify(full=True)
        follow_plan(self.crew)
        handled = 0
        for handler in self.suspended.ready():
            handled += handler.helper is not None
            self._advance(handler)
        if paused_by(self.crew) not in ("", *self.suspended.names()):
            lift_pause(self.crew, "the consultation was broken off")
        while (task := self._next_task()) is not None:
            if self.crew.is_usable(task):
                self._handle(task)
            handled += 1
        self._mend_instructions()
        return handled + handle_blocked_claims(self.crew)

    def supervise_and_dispatch(self) -> int:
        """Evict unhealthy workers and launch workers for ready tasks. Return the number of actions."""
        self.crew.table.connection.verify(full=True)
        follow_plan(self.crew)
        return worker_supervision.supervise(self.crew) + dispatch(self.crew)

    def _next_task(self) -> TaskRow | None:
        passed_over = self.crew.unusable | self.suspended.names()
        tasks = self.crew.table.needing_attention(1 + len(passed_over))
        return next((task for task in tasks if task.task_id not in passed_over), None)

    def _handle(self, task: TaskRow) -> None:
        """Run the handler of the task's state, until it ends or waits for a helper."""
        problem = ""
        try:
            asking = HANDLERS[task.state](self.crew, task)
        except StoreUnavailable:
            raise  # the task is not to blame
        except Exception as error:  # noqa: BLE001  # one task must not end the crew
            asking, problem = None, f"the conductor's handler raised {error!r}"
        if asking is None:
            self._check_effect(task, problem)
        else:
            self._advance(self.suspended.begin(task, asking))

    def _advance(self, handler: SuspendedHandler) -> None:
        """Run a handler that asks helpers, until it ends or waits for the next one."""
        problem = ""
        try:
            has_ended = self.suspended.advance(handler)
        except StoreUnavailable:
            raise
        except Exception as error:  # noqa: BLE001  # one task must not end the crew
            has_ended, problem = True, f"the conductor's handler raised {error!r}"
        if has_ended:
            self._check_effect(handler.task, problem)

    def _mend_instructions(self) -> None:
        """Begin to mend the instructions that dispatch could not use."""
        for task_id in tuple(self.crew.faulty_instructions):
            if task_id in self.suspended:
                continue
            task = self.crew.table.task(task_id)
            if task is not None and task.state in CLAIMABLE and not task.outcome:
                self._advance(self.suspended.begin(task, ensure_instructions(self.crew, task)))
            if task_id not in self.suspended:
                self.crew.faulty_instructions.pop(task_id, None)

    def _check_effect(self, task: TaskRow, problem: str) -> None:
        """Escalate the task after three handlers in a row that failed.

        A handler fails if it raises, or if it leaves the row as it was: the same row would come up forever.
        """
        after = self.crew.table.task(task.task_id)
        unchanged = (
            task.state in HANDLERS
            and after is not None
            and (after.state, after.note, after.outcome) == (task.state, task.note, task.outcome)
        )
        if not problem and not unchanged:
            self._handler_failures.pop(task.task_id, None)
            return
        problem = problem or "the conductor's answer had no effect"
        self.crew.log(f"{task.task_id}: {problem}")
        failures = self._handler_failures[task.task_id] = self._handler_failures.get(task.task_id, 0) + 1
        if failures >= MAX_HANDLER_FAILURES:
            self.crew.set_aside(task, problem)

    def finish_if_idle(self) -> bool:
        """Return whether no work is left that could run. Tasks that can never start are escalated then."""
        table = self.crew.table
        if self.suspended or self._next_task() is not None or table.running_sessions() or table.claimed_tasks():
            return False
        if table.get_fact(PAUSED_KEY):
            return False
        if not table.get_fact(HALTED_KEY) and table.ready_tasks(1, exclude=self.crew.unusable):
            return not self.crew.settings.attended and self._only_blocked_pools_are_left()
        for task in table.tasks(TaskState.WATCHING, TaskState.FIX_PROPOSED, TaskState.EXIT_REQUESTED):
            reason = table.get_fact(HALTED_KEY) or "its dependencies were not completed: " + ", ".join(task.depends_on)
            self.crew.escalate(task, reason)
        return True

    def _only_blocked_pools_are_left(self) -> bool:
        """Return whether every ready task waits for a person to open its pool. Such tasks keep their place."""
        table = self.crew.table
        blocked = blocked_pools(self.crew)
        return bool(blocked) and not table.ready_tasks(
            1, self.crew.unusable, lambda name: table.pool_of(name) not in blocked
        )

    def close(self) -> None:
        """Drop the handlers that wait for helpers: nothing of theirs is applied any more."""
        self.suspended.close()

    def is_complete(self) -> bool:
        """Return whether every task is complete or was removed from the plan."""
        return all(row.state is TaskState.COMPLETE or row.outcome == "removed" for row in self.crew.table.tasks())
