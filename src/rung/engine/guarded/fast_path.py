"""The fast path of guarded calls: a first attempt that succeeds makes no incident, no event and no request.

A failure always goes to the engine (`Guard.carry`), with the error and the time at which the attempt began. A journal
is given a good call as a few values (`Lane.story`), from which it makes the events when it writes them.
"""

from __future__ import annotations

from threading import get_ident
from time import monotonic
from typing import TYPE_CHECKING, Any

from rung.core.domain import events as ev
from rung.core.domain.errors import AttemptTimeout
from rung.core.domain.request import Request
from rung.core.policy.breaker import CallVerdict, CircuitState
from rung.core.policy.budget import RetryBudget
from rung.engine.loop.run import CURRENT
from rung.engine.ports import EPOCH
from rung.engine.timeouts.attempt_reports import REPORTED, AttemptReports, any_since, collect
from rung.engine.timeouts.sync_timeout import LOOK_EVERY, WATCHDOG, AttemptInterrupt, in_main, release

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.engine.guarded.guard import GuardedFunction
    from rung.engine.timeouts.async_timeout import TimeoutSweeper
    from rung.engine.timeouts.attempt_reports import CollectedReports

_FOREVER = float("inf")
# Reading a member off an enum class is slow in Python 3.11.
_GOOD, _CLOSED = CallVerdict.GOOD, CircuitState.CLOSED
WATCHED = WATCHDOG.due


class FastPath:
    """The fast path of one guarded function."""

    def __init__(self, guard: GuardedFunction) -> None:
        policy = guard.policy
        self.guard = guard
        assert guard.run.breaker is not None  # noqa: S101  # a guarded function has one
        self.breaker = guard.run.breaker
        self.herd = guard.run.retry_budget or RetryBudget()
        limits = (policy.attempt_seconds, policy.budget.seconds)
        self.limit = min((limit for limit in limits if limit is not None), default=_FOREVER)
        self.open = guard.flat and self.limit >= LOOK_EVERY  # the watchdog's rounds are too long for a shorter limit
        self.finished = self.breaker.calls.append if self.breaker.settings.slow is None else self._timed
        self.keep = None if guard.later is None else self._keep

    def _timed(self, began: float) -> None:
        self.breaker.record(None, began, EPOCH + monotonic(), _GOOD)

    def _keep(self, args: tuple[Any, ...], began: float) -> None:
        """Hand a good call to the journal: a few values, from which it makes the events when it writes them."""
        ended, run, later = EPOCH + monotonic(), self.guard.run, self.guard.later
        assert later is not None  # noqa: S101  # else this is not called
        request = args[0] if args and isinstance(args[0], Request) else None
        heard = collect(began, awaited=run.awaited) if any_since(began, awaited=run.awaited) else None
        try:
            if CURRENT.get() is None:
                later(self.story, request, began, ended, heard)
            else:  # the outer recovery is known in this context only
                story = self.story(request, began, ended, heard)
                later(lambda: story)
        except Exception as error:  # the call succeeded, whatever the journal does
            run().crashed("journal", error)

    def story(
        self, request: Request | None, began: float, ended: float, heard: CollectedReports | None
    ) -> list[ev.Event]:
        """The events of a call whose first attempt succeeded."""
        run = self.guard.run()
        run.open(request, began)
        for at, step in heard.steps if heard is not None else ():
            run.append(ev.StepCompleted(at, step))
        run.append(ev.AttemptSucceeded(ended, ended - began, heard.dollars if heard is not None else 0.0))
        return run.log

    def watch(self) -> None:
        """Start the watchdog; calls in the main thread can take the fast path while the circuit is closed."""
        if in_main():
            WATCHDOG.register(self.breaker)
            if self.breaker.circuit is not _CLOSED:  # checked last: another thread may open it at any moment
                self.breaker.fast_path_thread = None


def as_attempt(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any]:
    """The call as an attempt: a rung's request replaces the first argument; without a request it stays as it was."""

    def attempt(request: Request | None) -> Any:
        if request is None:
            return function(*args, **kwargs)
        return function(request, *args[1:], **kwargs)

    return attempt


def synchronous(function: Callable[..., Any], guard: GuardedFunction) -> Callable[..., Any]:
    """The wrapper of a plain function."""
    lane = FastPath(guard)
    if not lane.open:

        def engine_only(*args: Any, **kwargs: Any) -> Any:
            return guard.carry(as_attempt(function, args, kwargs), args)

        return engine_only
    return _unlimited(function, lane) if lane.limit == _FOREVER else _limited(function, lane)


def _limited(function: Callable[..., Any], lane: FastPath) -> Callable[..., Any]:
    """The wrapper of a plain function with a time limit: its fast path is for the main thread, which is watched."""
    # Few free variables and the rest global: each one is copied on every call.
    guard, breaker, herd, limit, finished, keep = (
        lane.guard,
        lane.breaker,
        lane.herd,
        lane.limit,
        lane.finished,
        lane.keep,
    )

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if get_ident() != breaker.fast_path_thread:
            lane.watch()
            return guard.carry(as_attempt(function, args, kwargs), args)
        began = monotonic()
        due = began + limit
        try:
            WATCHED.append(due)
            value = function(*args, **kwargs)
            WATCHED.pop()
            finished(EPOCH + began)
            if herd.is_below_capacity:
                herd.credit()
            if keep is not None:
                keep(args, EPOCH + began)
            return value
        except Exception as error:
            failed: Exception = error
            release(due)
        except AttemptInterrupt as overdue:
            if release(due) != overdue.depth:
                raise
            failed = AttemptTimeout(limit)
        except BaseException:
            release(due)
            raise
        try:
            return guard.carry(as_attempt(function, args, kwargs), args, failed, EPOCH + began)
        finally:
            del failed  # its traceback holds this frame: a cycle, and work for the collector

    return wrapper


def _unlimited(function: Callable[..., Any], lane: FastPath) -> Callable[..., Any]:
    """The wrapper of a plain function without a time limit: nothing is watched, so any thread may call it."""
    guard, breaker, herd, finished, keep = lane.guard, lane.breaker, lane.herd, lane.finished, lane.keep

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if breaker.circuit is not _CLOSED:
            return guard.carry(as_attempt(function, args, kwargs), args)
        if REPORTED.get() is None:
            REPORTED.set(AttemptReports())  # shared with the threads and tasks it starts
        began = monotonic()
        try:
            value = function(*args, **kwargs)
            finished(EPOCH + began)
            if herd.is_below_capacity:
                herd.credit()
            if keep is not None:
                keep(args, EPOCH + began)
            return value
        except Exception as error:
            failed: Exception = error
        try:
            return guard.carry(as_attempt(function, args, kwargs), args, failed, EPOCH + began)
        finally:
            del failed  # as above

    return wrapper


def asynchronous(function: Callable[..., Any], guard: GuardedFunction) -> Callable[..., Any]:
    """The wrapper of a coroutine function."""
    lane = FastPath(guard)
    guard.run.awaited = True
    if lane.open:
        return _awaited(function, lane)

    async def engine_only(*args: Any, **kwargs: Any) -> Any:
        return await guard.acarry(as_attempt(function, args, kwargs), args)

    return engine_only


def _awaited(function: Callable[..., Any], lane: FastPath) -> Callable[..., Any]:
    """The wrapper of a coroutine function whose calls are watched by the sweeper of their event loop."""
    from asyncio import CancelledError

    from rung.engine.timeouts.async_timeout import OVERDUE, RUNNING, cancelled_by_us, sweeper_here, task_in

    guard, breaker, herd, limit, finished, keep = (
        lane.guard,
        lane.breaker,
        lane.herd,
        lane.limit,
        lane.finished,
        lane.keep,
    )
    sweeper: TimeoutSweeper | None = None

    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        nonlocal sweeper
        if breaker.circuit is not _CLOSED:
            return await guard.acarry(as_attempt(function, args, kwargs), args)
        # Asking for the running loop is slow in Python 3.11; one with a task at work in this thread is it.
        here = sweeper  # read once: a call in another thread may put its own in the place
        if here is None or here.thread != get_ident() or (task := task_in(here.loop)) is None:
            here = sweeper = sweeper_here()
            task = task_in(here.loop)
        if task is not here.task:
            here.attend(task)
        began = monotonic()
        work = function(*args, **kwargs)
        RUNNING[work] = (began + limit, task, here.cancels)
        try:
            value = await work
            del RUNNING[work]
            if OVERDUE:
                cancelled_by_us(work, task)  # should it have come back all the same, take our cancellation back
            finished(EPOCH + began)
            if herd.is_below_capacity:
                herd.credit()
            if keep is not None:
                keep(args, EPOCH + began)
            return value
        except Exception as error:
            failed: Exception = error
            RUNNING.pop(work, None)
            cancelled_by_us(work, task)
        except CancelledError:
            RUNNING.pop(work, None)
            here.task = None  # its cancellations are counted anew
            if not cancelled_by_us(work, task):
                raise
            failed = AttemptTimeout(limit)
        except BaseException:
            RUNNING.pop(work, None)
            cancelled_by_us(work, task)
            raise
        try:
            return await guard.acarry(as_attempt(function, args, kwargs), args, failed, EPOCH + began)
        finally:
            del failed  # as above

    return wrapper
