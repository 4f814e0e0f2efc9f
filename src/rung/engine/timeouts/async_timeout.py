"""Time limits of async attempts.

A short limit has its own timer. Longer limits share one `TimeoutSweeper` for each event loop, because a timer for each
attempt would cost more than the rest of the fast path.
"""

from __future__ import annotations

import asyncio
import sys
from threading import get_ident
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rung.core.domain.errors import AttemptTimeout
from rung.engine.timeouts.attempt_reports import CURRENT_REPORTS, install
from rung.engine.timeouts.sync_timeout import WATCHDOG_POLL_SECONDS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")
Task = asyncio.Task[Any]

# Running attempts: deadline, task, and the number of cancellations that the task had before.
RUNNING: Final[dict[object, tuple[float, Task | None, int]]] = {}
# Attempts that this module has cancelled, and the number of cancellations that their task had before.
OVERDUE: Final[dict[object, int]] = {}

# Return the task running in a loop. The public function is slow Python code before 3.12, and is called on every call.
current_task_of: Callable[[asyncio.AbstractEventLoop], Task | None] = (
    asyncio.tasks._current_tasks.get  # type: ignore[attr-defined]  # noqa: SLF001  # the dict behind current_task
    if sys.version_info < (3, 12)
    else asyncio.current_task
)


async def await_with_timeout(work: Awaitable[T], seconds: float | None) -> T:
    """Await `work` and raise AttemptTimeout after `seconds`. A cancellation by the caller propagates."""
    if seconds is None:
        return await work
    if seconds >= WATCHDOG_POLL_SECONDS:
        return await _await_swept(work, seconds)
    timer = asyncio.timeout(max(0.0, seconds))
    try:
        async with timer:
            return await work
    except TimeoutError:
        if timer.expired():
            raise AttemptTimeout(seconds) from None
        raise


async def _await_swept(work: Awaitable[T], seconds: float) -> T:
    current_sweeper()
    task = asyncio.current_task()
    RUNNING[work] = (monotonic() + seconds, task, 0 if task is None else task.cancelling())
    try:
        return await work
    except asyncio.CancelledError:
        if cancelled_by_us(work, task):
            raise AttemptTimeout(seconds) from None
        raise
    finally:
        del RUNNING[work]
        cancelled_by_us(work, task)


class TimeoutSweeper:
    """Cancels overdue attempts of one event loop. Wakes every few seconds, or at the next deadline."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.thread = get_ident()
        # The task of the last call, and its number of cancellations. A task that is being cancelled is examined on
        # every call, so that a caller's cancellation is never mistaken for a timeout.
        self.task: Task | None = None
        self.cancels = 0
        loop.call_later(WATCHDOG_POLL_SECONDS, self.sweep_now)

    def track(self, task: Task | None) -> None:
        """Switch to another task: count its cancellations, and give it a report buffer that its children share."""
        if task is None:
            self.task, self.cancels = None, 0
            return
        self.cancels = cancels = task.cancelling()
        self.task = None if cancels else task
        here = CURRENT_REPORTS.get()
        if here is None or here.owner is None or here.owner() is not task:
            install(task)

    def sweep_now(self) -> None:
        """Cancel overdue attempts and schedule the next sweep."""
        now = monotonic()
        next_sweep = now + WATCHDOG_POLL_SECONDS
        self.task = None  # it may have ended: do not keep it alive
        # A copy: other threads add and remove entries while this iterates.
        for work, (deadline, task, cancels) in RUNNING.copy().items():
            if task is None or task.get_loop() is not self.loop:
                continue
            if deadline > now:
                next_sweep = min(next_sweep, deadline)
            elif work not in OVERDUE:
                OVERDUE[work] = cancels
                task.cancel()
        self.loop.call_later(next_sweep - now, self.sweep_now)


def cancelled_by_us(work: object, task: Task | None) -> bool:
    """Withdraw our cancellation of an attempt. Return whether the timeout was its only cancellation."""
    before = OVERDUE.pop(work, None)
    return before is not None and task is not None and task.uncancel() <= before


SWEEPERS: Final[dict[asyncio.AbstractEventLoop, TimeoutSweeper]] = {}


def current_sweeper() -> TimeoutSweeper:
    """Return the sweeper of the running event loop."""
    loop = asyncio.get_running_loop()
    sweeper = SWEEPERS.get(loop)
    if sweeper is None:
        for old_loop in list(SWEEPERS):
            if old_loop.is_closed():
                SWEEPERS.pop(old_loop, None)
        sweeper = SWEEPERS[loop] = TimeoutSweeper(loop)
    sweeper.thread = get_ident()
    return sweeper
