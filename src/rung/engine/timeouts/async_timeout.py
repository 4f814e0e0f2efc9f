"""Ending an awaited attempt whose time is up.

A short limit has a timer of its own. Longer ones share one `Sweeper` for each event loop: a timer for each attempt
would cost more than everything else together.
"""

from __future__ import annotations

import asyncio
import sys
from threading import get_ident
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rung.core.domain.errors import AttemptTimeout
from rung.engine.timeouts.attempt_reports import REPORTED, install
from rung.engine.timeouts.sync_timeout import LOOK_EVERY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")
Task = asyncio.Task[Any]

# The attempts that are running: when each is due, in which task, and how often that had been cancelled before.
RUNNING: Final[dict[object, tuple[float, Task | None, int]]] = {}
# Those whose time was up, and how often their task had been cancelled when they began.
OVERDUE: Final[dict[object, int]] = {}

# The task running in a loop. The public function is Python code before 3.12, and asked on every call.
task_in: Callable[[asyncio.AbstractEventLoop], Task | None] = (
    asyncio.tasks._current_tasks.get  # type: ignore[attr-defined]  # noqa: SLF001  # the dict behind it
    if sys.version_info < (3, 12)
    else asyncio.current_task
)


async def limited(work: Awaitable[T], seconds: float | None) -> T:
    """Await it, and raise TimeUp when it has not come back in so many seconds.

    Whose cancellation it was is asked of the timer: a caller's passes through.
    """
    if seconds is None:
        return await work
    if seconds >= LOOK_EVERY:
        return await _swept(work, seconds)
    timer = asyncio.timeout(max(0.0, seconds))
    try:
        async with timer:
            return await work
    except TimeoutError:
        if timer.expired():
            raise AttemptTimeout(seconds) from None
        raise


async def _swept(work: Awaitable[T], seconds: float) -> T:
    sweeper_here()
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
    """Ends the overdue attempts of one event loop; looks every few seconds, or when one is due."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.thread = get_ident()
        # The task that made the last call, and how often it had been cancelled. A task that is being cancelled
        # is looked at on every call, so that a caller's cancellation is never taken for ours.
        self.task: Task | None = None
        self.cancels = 0
        loop.call_later(LOOK_EVERY, self.sweep_now)

    def attend(self, task: Task | None) -> None:
        """Another task than the last makes a call: count its cancellations, and let it hear its children."""
        if task is None:
            self.task, self.cancels = None, 0
            return
        self.cancels = cancels = task.cancelling()
        self.task = None if cancels else task
        here = REPORTED.get()
        if here is None or here.owner is None or here.owner() is not task:
            install(task)

    def sweep_now(self) -> None:
        """Cancel overdue attempts, and schedule the next sweep."""
        now = monotonic()
        soon = now + LOOK_EVERY
        self.task = None  # it may have ended: do not keep it
        # A copy: other threads begin and end theirs meanwhile, and a dict that changes cannot be walked.
        for work, (due, task, cancels) in RUNNING.copy().items():
            if task is None or task.get_loop() is not self.loop:
                continue
            if due > now:
                soon = min(soon, due)
            elif work not in OVERDUE:
                OVERDUE[work] = cancels
                task.cancel()
        self.loop.call_later(soon - now, self.sweep_now)


def cancelled_by_us(work: object, task: Task | None) -> bool:
    """Was it we alone who cancelled this? Takes our cancellation back."""
    before = OVERDUE.pop(work, None)
    return before is not None and task is not None and task.uncancel() <= before


SWEEPERS: Final[dict[asyncio.AbstractEventLoop, TimeoutSweeper]] = {}


def sweeper_here() -> TimeoutSweeper:
    """The sweeper of the running event loop."""
    loop = asyncio.get_running_loop()
    sweeper = SWEEPERS.get(loop)
    if sweeper is None:
        for former in list(SWEEPERS):
            if former.is_closed():
                SWEEPERS.pop(former, None)
        sweeper = SWEEPERS[loop] = TimeoutSweeper(loop)
    sweeper.thread = get_ident()
    return sweeper
