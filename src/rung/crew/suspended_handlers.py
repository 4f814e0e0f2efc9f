"""Handlers that wait for a helper's answer: resumed when it is there, dropped when their task has moved on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rung.core.crew.contract import MessageType, TaskState
from rung.core.domain.errors import StoreUnavailable

if TYPE_CHECKING:
    from rung.crew.context import ConductorContext
    from rung.crew.helper_runs import RunningHelper
    from rung.crew.subagent import Asking
    from rung.store.crew.rows import TaskRow

# Messages of a worker that the conductor answers. A newer one makes the answer to the one before stale.
_REPORTS: Final = (MessageType.ERROR, MessageType.CONTEXT_WARNING, MessageType.REVIEW_REQUEST)


@dataclass(slots=True, kw_only=True)
class SuspendedHandler:
    """A handler, the row and the newest report that it began with, and the helper that it waits for."""

    task: TaskRow
    report_id: int
    asking: Asking[None]
    helper: RunningHelper | None = None

    @property
    def is_ready(self) -> bool:
        """Return whether the handler can go on: its helper has ended, or it waits for none."""
        return self.helper is None or self.helper.done.is_set()

    def is_about(self, task: TaskRow | None, report_id: int) -> bool:
        """Return whether the task still waits for what this handler answers."""
        if task is None or report_id != self.report_id or _identity(task) != _identity(self.task):
            return False
        outlives = self.helper is None or self.helper.run.outlives_worker
        return task.state is self.task.state or (outlives and task.state is TaskState.EXITED)


def _identity(task: TaskRow) -> tuple[object, ...]:
    return task.generation, task.error_tries, task.warnings, task.checkpoint, task.review_cycles, task.outcome


class SuspendedHandlers:
    """The handlers of one conductor that wait, by task: each task has at most one."""

    def __init__(self, crew: ConductorContext) -> None:
        self._crew = crew
        self._by_task: dict[str, SuspendedHandler] = {}

    def __len__(self) -> int:
        return len(self._by_task)

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._by_task

    def names(self) -> frozenset[str]:
        """Return the tasks whose handler waits."""
        return frozenset(self._by_task)

    def begin(self, task: TaskRow, asking: Asking[None]) -> SuspendedHandler:
        """Return a handler that has not run yet."""
        return SuspendedHandler(task=task, report_id=self._newest_report(task.task_id), asking=asking)

    def ready(self) -> list[SuspendedHandler]:
        """Return the handlers that can go on. Those whose task has moved on are dropped, with their helpers."""
        ready = []
        for task_id, handler in tuple(self._by_task.items()):
            if not handler.is_about(self._crew.table.task(task_id), self._newest_report(task_id)):
                self._crew.log(f"{task_id}: moved on while a helper was at work; its answer is dropped")
                self._drop(task_id)
            elif handler.is_ready:
                ready.append(handler)
        return ready

    def advance(self, handler: SuspendedHandler) -> bool:
        """Run a handler until it ends or has to wait. Return whether it has ended."""
        task_id = handler.task.task_id
        self._by_task.pop(task_id, None)
        try:
            run = handler.asking.send(handler.helper)
        except StopIteration:
            return True
        handler.helper = self._crew.helpers.start(task_id, run) if run is not None else None
        self._by_task[task_id] = handler
        return False

    def close(self) -> None:
        """Drop all handlers and end their helpers: nothing of theirs is applied."""
        for task_id in tuple(self._by_task):
            try:
                self._drop(task_id)
            except StoreUnavailable as error:  # the next conductor cleans up
                self._crew.log(f"{task_id}: {error}")

    def _drop(self, task_id: str) -> None:
        handler = self._by_task.pop(task_id)
        if handler.helper is not None:
            handler.helper.cancel()
        handler.asking.close()

    def _newest_report(self, task_id: str) -> int:
        reports = self._crew.table.messages(task_id, types=_REPORTS)
        return reports[-1].id if reports else 0
