"""Fast path of guarded calls: a first attempt that succeeds creates no incident, no event and no request.

A failure goes to `GuardedFunction.recover_call`, with the error and the start time of the attempt. If nobody observes the
call, its first retry needs no incident either (`first_retry`); from the second failure on, the engine does everything.
A journal receives a successful call as a few values and builds the events (`FastPath.success_events`) when it writes.
"""

from __future__ import annotations

from threading import get_ident
from time import monotonic
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from rung.core.domain import events as ev
from rung.core.domain.errors import AttemptTimeout
from rung.core.domain.request import Request
from rung.core.policy.breaker import CallVerdict, CircuitState
from rung.core.policy.budget import RetryBudget
from rung.engine.arguments import refuse_coroutine
from rung.engine.loop.run import CURRENT
from rung.engine.ports.clock import EPOCH
from rung.engine.timeouts.attempt_reports import CURRENT_REPORTS, AttemptReports, any_since, collect
from rung.engine.timeouts.sync_timeout import (
    WATCHDOG,
    WATCHDOG_POLL_SECONDS,
    AttemptInterrupt,
    can_interrupt_here,
    unwatch,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rung.engine.guarded.guard import GuardedFunction
    from rung.engine.timeouts.async_timeout import TimeoutSweeper
    from rung.engine.timeouts.attempt_reports import CollectedReports

_FOREVER = float("inf")
# Bound once: reading a member of an enum class is slow in Python 3.11.
_GOOD, _CLOSED = CallVerdict.GOOD, CircuitState.CLOSED
WATCHED_DEADLINES = WATCHDOG.deadlines


class FastPath:
    """Fast path of one guarded function."""

    def __init__(self, guard: GuardedFunction) -> None:
        policy = guard.policy
        self.guard = guard
        assert guard.run_class.breaker is not None  # noqa: S101  # set by GuardedFunction
        self.breaker = guard.run_class.breaker
        self.retry_budget = guard.run_class.retry_budget or RetryBudget()
        limits = (policy.attempt_seconds, policy.budget.seconds)
        self.limit = min((limit for limit in limits if limit is not None), default=_FOREVER)
        self.is_enabled = (
            guard.uses_fast_path and self.limit >= WATCHDOG_POLL_SECONDS
        )  # the watchdog polls too rarely for a shorter limit
        self.record_success = (
            self.breaker.calls.append if self.breaker.settings.slow is None else self._record_timed_success
        )
        self.append_success = None if guard.append_lazy is None else self._append_success

    def _record_timed_success(self, began: float) -> None:
        self.breaker.record(None, began, EPOCH + monotonic(), _GOOD)

    def _append_success(self, args: tuple[Any, ...], began: float) -> None:
        """Pass a successful call to the journal, as values from which it builds the events when it writes them."""
        ended, run, append_lazy = EPOCH + monotonic(), self.guard.run_class, self.guard.append_lazy
        assert append_lazy is not None  # noqa: S101  # called only with a lazy log
        request = args[0] if args and isinstance(args[0], Request) else None
        reports = collect(began, is_async=run.is_async) if any_since(began, is_async=run.is_async) else None
        try:
            if CURRENT.get() is None:
                append_lazy(self.success_events, request, began, ended, reports)
            else:  # the outer recovery is visible in this context only: build the events now
                events = self.success_events(request, began, ended, reports)
                append_lazy(lambda: events)
        except Exception as error:  # a journal error must not fail a successful call
            run().record_crash("journal", error)

    def success_events(
        self, request: Request | None, began: float, ended: float, reports: CollectedReports | None
    ) -> list[ev.Event]:
        """Build the events of a call whose first attempt succeeded."""
        run = self.guard.run_class()
        run.open(request, began)
        for at, step in reports.steps if reports is not None else ():
            run.append(ev.StepCompleted(at, step))
        run.append(ev.AttemptSucceeded(ended, ended - began, reports.dollars if reports is not None else 0.0))
        return run.log

    def count_in_flight(self, function: Callable[..., Any], running: Mapping[Any, object]) -> None:
        """Let the breaker count the coroutines of this function that are running."""
        code = getattr(function, "__code__", None)
        if code is not None:
            self.breaker.counters[code] = lambda: sum(getattr(work, "cr_code", None) is code for work in [*running])

    def register_with_watchdog(self) -> None:
        """Start the watchdog, so that calls in the main thread can take the fast path while the circuit is closed."""
        if can_interrupt_here():
            WATCHDOG.register(self.breaker)
            if self.breaker.circuit is not _CLOSED:  # checked last: another thread may open it at any moment
                self.breaker.fast_path_thread = None


def as_attempt(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any]:
    """Return the call as an attempt. The request of a rung replaces the first argument."""

    def attempt(request: Request | None) -> Any:
        if request is None:
            return function(*args, **kwargs)
        return function(request, *args[1:], **kwargs)

    return attempt


def wrap_sync(function: Callable[..., Any], guard: GuardedFunction) -> Callable[..., Any]:
    """Wrap a plain function."""
    fast_path = FastPath(guard)
    if not fast_path.is_enabled:

        def engine_only(*args: Any, **kwargs: Any) -> Any:
            return guard.recover_call(as_attempt(function, args, kwargs), args)

        return engine_only
    return _wrap_unlimited(function, fast_path) if fast_path.limit == _FOREVER else _wrap_limited(function, fast_path)


def _wrap_limited(function: Callable[..., Any], fast_path: FastPath) -> Callable[..., Any]:
    """Wrap a plain function with a time limit. The fast path is for the main thread, which the watchdog can interrupt."""
    # Few free variables, the rest globals: each free variable is copied on every call.
    guard, breaker, retry_budget, limit, record_success, append_success = (
        fast_path.guard,
        fast_path.breaker,
        fast_path.retry_budget,
        fast_path.limit,
        fast_path.record_success,
        fast_path.append_success,
    )

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if get_ident() != breaker.fast_path_thread:
            fast_path.register_with_watchdog()
            return guard.recover_call(as_attempt(function, args, kwargs), args)
        if retry_budget.is_below_capacity:
            retry_budget.credit()
        began = monotonic()
        deadline = began + limit
        try:
            WATCHED_DEADLINES.append(deadline)
            value = function(*args, **kwargs)
            WATCHED_DEADLINES.pop()
            if value.__class__ is CoroutineType:
                refuse_coroutine(value, function.__qualname__)
            record_success(EPOCH + began)
            if append_success is not None:
                append_success(args, EPOCH + began)
            return value
        except Exception as error:
            failed: Exception = error
            unwatch(deadline)
        except AttemptInterrupt as overdue:
            if unwatch(deadline) != overdue.depth:
                raise
            failed = AttemptTimeout(limit)
        except BaseException:
            unwatch(deadline)
            raise
        try:
            return guard.recover_call(as_attempt(function, args, kwargs), args, failed, EPOCH + began)
        finally:
            del failed  # its traceback references this frame: a reference cycle

    return wrapper


def _wrap_unlimited(function: Callable[..., Any], fast_path: FastPath) -> Callable[..., Any]:
    """Wrap a plain function without a time limit. No watchdog is needed, so any thread takes the fast path."""
    guard, breaker, retry_budget, record_success, append_success = (
        fast_path.guard,
        fast_path.breaker,
        fast_path.retry_budget,
        fast_path.record_success,
        fast_path.append_success,
    )

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if breaker.circuit is not _CLOSED:
            return guard.recover_call(as_attempt(function, args, kwargs), args)
        if CURRENT_REPORTS.get() is None:
            CURRENT_REPORTS.set(AttemptReports())  # inherited by the threads and tasks that the call starts
        if retry_budget.is_below_capacity:
            retry_budget.credit()
        began = monotonic()
        try:
            value = function(*args, **kwargs)
            if value.__class__ is CoroutineType:
                refuse_coroutine(value, function.__qualname__)
            record_success(EPOCH + began)
            if append_success is not None:
                append_success(args, EPOCH + began)
            return value
        except Exception as error:
            failed: Exception = error
        try:
            return guard.recover_call(as_attempt(function, args, kwargs), args, failed, EPOCH + began)
        finally:
            del failed  # its traceback references this frame: a reference cycle

    return wrapper


def wrap_async(function: Callable[..., Any], guard: GuardedFunction) -> Callable[..., Any]:
    """Wrap a coroutine function."""
    fast_path = FastPath(guard)
    guard.run_class.is_async = True
    if fast_path.is_enabled:
        return _wrap_swept(function, fast_path)

    async def engine_only(*args: Any, **kwargs: Any) -> Any:
        return await guard.arecover_call(as_attempt(function, args, kwargs), args)

    return engine_only


def _wrap_swept(function: Callable[..., Any], fast_path: FastPath) -> Callable[..., Any]:
    """Wrap a coroutine function whose time limit is enforced by the sweeper of its event loop."""
    from asyncio import CancelledError

    from rung.engine.timeouts.async_timeout import (
        OVERDUE,
        RUNNING,
        cancelled_by_us,
        current_sweeper,
        current_task_of,
        error_of_call,
    )

    guard, breaker, retry_budget, limit, record_success, append_success = (
        fast_path.guard,
        fast_path.breaker,
        fast_path.retry_budget,
        fast_path.limit,
        fast_path.record_success,
        fast_path.append_success,
    )
    sweeper: TimeoutSweeper | None = None
    fast_path.count_in_flight(function, RUNNING)

    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        nonlocal sweeper
        if breaker.circuit is not _CLOSED:
            return await guard.arecover_call(as_attempt(function, args, kwargs), args)
        # get_running_loop is slow in Python 3.11: reuse the last sweeper if its loop runs a task in this thread.
        current = sweeper  # read once: a call in another thread may replace it
        if current is None or current.thread != get_ident() or (task := current_task_of(current.loop)) is None:
            current = sweeper = current_sweeper()
            task = current_task_of(current.loop)
        if task is not current.task:
            current.track(task)
        if retry_budget.is_below_capacity:
            retry_budget.credit()
        began = monotonic()
        coroutine = function(*args, **kwargs)
        RUNNING[coroutine] = (began + limit, task, current.cancels)
        try:
            value = await coroutine
            del RUNNING[coroutine]
            if OVERDUE:
                cancelled_by_us(coroutine, task)  # it returned although cancelled: withdraw our cancellation
            record_success(EPOCH + began)
            if append_success is not None:
                append_success(args, EPOCH + began)
            return value
        except Exception as error:
            RUNNING.pop(coroutine, None)
            cancelled_by_us(coroutine, task)
            failed: Exception = error_of_call(coroutine, error, limit)
        except CancelledError:
            RUNNING.pop(coroutine, None)
            current.task = None  # force a new count of its cancellations
            if not cancelled_by_us(coroutine, task):
                raise
            failed = AttemptTimeout(limit)
        except BaseException:
            RUNNING.pop(coroutine, None)
            cancelled_by_us(coroutine, task)
            raise
        try:
            return await guard.arecover_call(as_attempt(function, args, kwargs), args, failed, EPOCH + began)
        finally:
            del failed  # its traceback references this frame: a reference cycle

    return wrapper
