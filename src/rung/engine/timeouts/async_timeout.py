"""Time limits of async attempts.

A short limit has its own timer. Longer limits share one `TimeoutSweeper` for each event loop, because a timer for each
attempt would cost more than the rest of the fast path.
"""

from __future__ import annotations

import asyncio
import sys
from threading import get_ident
from time import monotonic
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from rung.core.domain.errors import AttemptTimeout
from rung.engine.timeouts.attempt_reports import CURRENT_REPORTS, install
from rung.engine.timeouts.sync_timeout import WATCHDOG_POLL_SECONDS, limit_error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from rung.engine.timeouts.patience import Patience

T = TypeVar("T")
Task = asyncio.Task[Any]

# Running attempts: deadline, task, and the number of cancellations that the task had before.
RUNNING: Final[dict[object, tuple[float, Task | None, int]]] = {}
# Time for the `finally` blocks of a cancelled attempt, before it is left behind.
CANCEL_GRACE_SECONDS: Final = 2.0
MAX_TIMER_SECONDS: Final = 3_600.0  # an event loop cannot wait for ever
# Attempts that ignored both a cancellation and being closed. Nothing resumes them.
LEFT_BEHIND: Final[list[object]] = []
# Coroutines of guarded calls that swallowed their cancellation and were closed.
CLOSED: Final[set[object]] = set()
# Attempts that this module has cancelled, and the number of cancellations that their task had before.
OVERDUE: Final[dict[object, int]] = {}

# Return the task running in a loop. The public function is slow Python code before 3.12, and is called on every call.
current_task_of: Callable[[asyncio.AbstractEventLoop], Task | None] = (
    asyncio.tasks._current_tasks.get  # type: ignore[attr-defined]  # noqa: SLF001  # the dict behind current_task
    if sys.version_info < (3, 12)
    else asyncio.current_task
)


async def await_with_timeout(work: Awaitable[T], seconds: float | None, patience: Patience | None = None) -> T:
    """Await `work` and raise AttemptTimeout after `seconds`, or AttemptStalled when the patience is over.

    A cancellation by the caller propagates.
    """
    if seconds is None and patience is None:
        return await work
    sweeper, task = current_sweeper(), asyncio.current_task()
    leavable = LeavableAwait(work)
    end = float("inf") if seconds is None else monotonic() + seconds
    RUNNING[leavable] = (end, task, 0 if task is None else task.cancelling())
    if seconds is not None and seconds < WATCHDOG_POLL_SECONDS:
        sweeper.cancel_at(leavable, end)
    if patience is not None:
        sweeper.cancel_when_stalled(leavable, patience)
    try:
        return await leavable
    except asyncio.CancelledError:
        if cancelled_by_us(leavable, task):
            raise limit_error(seconds, patience, left_behind=leavable.is_left) from None
        raise
    finally:
        del RUNNING[leavable]
        for timer in leavable.timers.values():
            timer.cancel()
        cancelled_by_us(leavable, task)


class LeavableAwait(Generic[T]):
    """Awaits `work` in the same task. Once it is left, a cancellation ends the await, not the work.

    Work that swallows its cancellation would keep its task for ever. After a grace it is closed, and if it swallows
    that as well, it is never resumed again.
    """

    __slots__ = ("_steps", "is_left", "timers")

    def __init__(self, work: Awaitable[T]) -> None:
        self._steps: Any = work.__await__()
        self.is_left = False
        self.timers: dict[str, asyncio.TimerHandle] = {}

    def __await__(self) -> Generator[Any, Any, T]:
        return self  # has what `await` needs of a generator

    def __iter__(self) -> LeavableAwait[T]:
        return self

    def __next__(self) -> Any:
        return next(self._steps)

    def send(self, value: Any) -> Any:
        """Resume the work."""
        return self._steps.send(value)

    def throw(self, *error: Any) -> Any:
        """Throw an error into the work, or out of the await if the work was left."""
        if not self.is_left:
            return self._steps.throw(*error)
        try:
            self.close()
        except Exception:  # it ignores this, too, or its cleanup fails
            LEFT_BEHIND.append(self._steps)  # else its destructor would try to close it again
        raise error[0] if isinstance(error[0], BaseException) else error[0]()

    def close(self) -> None:
        """Close the work."""
        self._steps.close()


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
        for work, (deadline, task, _) in RUNNING.copy().items():
            if task is None or task.get_loop() is not self.loop:
                continue
            if deadline > now:
                next_sweep = min(next_sweep, deadline)
            elif work not in OVERDUE:
                self.cancel_overdue(work)
        self.loop.call_later(next_sweep - now, self.sweep_now)

    def cancel_at(self, work: LeavableAwait[Any], deadline: float) -> None:
        """Cancel an attempt at its deadline with a timer of its own."""
        left = max(0.0, deadline - monotonic())
        work.timers["limit"] = self.loop.call_later(left, self.cancel_overdue, work)

    def cancel_when_stalled(self, work: LeavableAwait[Any], patience: Patience) -> None:
        """Cancel an attempt when the patience with it is over, which moves with its progress."""
        if patience.is_over():
            self.cancel_overdue(work)
            return
        left = min(max(0.0, patience.deadline() - monotonic()), MAX_TIMER_SECONDS)
        work.timers["stall"] = self.loop.call_later(left, self.cancel_when_stalled, work, patience)

    def cancel_overdue(self, work: object) -> None:
        """Cancel an attempt whose time is over, and leave it behind if it has not ended after the grace."""
        _, task, cancels = RUNNING.get(work, (0.0, None, 0))
        if task is None or work in OVERDUE:
            return
        OVERDUE[work] = cancels
        task.cancel()
        if isinstance(work, LeavableAwait | CoroutineType):
            self.loop.call_later(CANCEL_GRACE_SECONDS, self._leave, work, task)

    @staticmethod
    def _leave(work: LeavableAwait[Any] | CoroutineType[Any, Any, Any], task: Task) -> None:
        """Leave an attempt behind that has swallowed its cancellation. The coroutine of a guarded call is closed."""
        if work not in OVERDUE:
            return
        if isinstance(work, LeavableAwait):
            work.is_left = True
        else:
            try:
                work.close()
            except RuntimeError:
                return  # it ignores that, too: nothing can end it from outside
            CLOSED.add(work)
        task.cancel()


def cancelled_by_us(work: object, task: Task | None) -> bool:
    """Withdraw our cancellation of an attempt. Return whether the timeout was its only cancellation."""
    before = OVERDUE.pop(work, None)
    if before is None or task is None:
        return False
    if getattr(work, "is_left", False) or work in CLOSED:
        task.uncancel()  # it was cancelled twice
    return task.uncancel() <= before


def error_of_call(coroutine: object, error: Exception, limit: float) -> Exception:
    """Return the error of a guarded call: its own, or a timeout if it was closed because it swallowed its cancellation."""
    if coroutine not in CLOSED:
        return error
    CLOSED.discard(coroutine)
    return AttemptTimeout(limit, left_behind=True)


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
