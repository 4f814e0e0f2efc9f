"""The short way of a guarded call: most succeed at once, and most others when they are repeated once.

No incident, event or request is made on this way. A first repeat is taken by what `decide` said of an
equal failure on a fresh incident, remembered in a plan; it is recorded as a brief of five values, from
which the very events of the long way can be made (`Brief.events`; a test holds the two together). Whatever
is less simple goes the long way, and nothing about recovery is decided here.
"""

from __future__ import annotations

import threading
from collections import deque
from random import random
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, NamedTuple

from rung.core import events as ev
from rung.core.breaker import Circuit, Vote
from rung.core.budget import RetryBudget
from rung.core.errors import TimeUp
from rung.core.request import Request
from rung.engine.interrupt import LOOK_EVERY, MAIN, WATCHDOG, Overdue, in_main, release
from rung.engine.ports import EPOCH
from rung.engine.run import CURRENT, REPORTED, VOTES, name

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.failures import Failure
    from rung.engine.guard import Guard
    from rung.engine.run import Run
    from rung.engine.timer import Sweeper

_FOREVER = float("inf")
_PLANS = 256
# Reading a member off an enum class is slow in Python 3.11.
_GOOD, _BAD = Vote.GOOD, Vote.BAD


class Plan(NamedTuple):
    """What to do at the first failure of this sort: repeat, after a part of `ceiling` seconds."""

    failure: Failure
    repeat: ev.Repeat
    ceiling: float
    limit: float  # seconds the repeated attempt may take at most, by its own limit and its rung's
    bad: bool  # it counts against the service


class Brief(NamedTuple):
    """A call that failed once and succeeded when repeated."""

    began: float
    failed: float
    plan: Plan
    wait: float
    again: float
    ended: float

    def events(self, guard: Guard) -> list[ev.Event]:
        """What happened, as the long way would have recorded it."""
        run = unfold(guard, self)
        run.record(ev.AttemptSucceeded(self.ended, self.ended - self.again, 0.0))
        return run.log


class Lane:
    """The state of one guarded function's short way."""

    def __init__(self, guard: Guard) -> None:
        policy = guard.policy
        self.guard = guard
        self.open = guard.flat
        assert guard.run.breaker is not None  # noqa: S101  # a guarded function has one
        self.breaker = guard.run.breaker
        self.herd = guard.run.retry_budget
        self.own = _FOREVER if policy.attempt_seconds is None else policy.attempt_seconds
        self.total = _FOREVER if policy.budget.seconds is None else policy.budget.seconds
        self.limit = min(self.own, self.total)
        self.jitter = policy.backoff.jitter
        self.timed = self.breaker.settings.slow is not None
        self.recent: deque[tuple[float, float, Plan, float, float, float]] = deque(maxlen=100)  # briefs
        self.plans: dict[tuple[type, tuple[Any, ...]], Plan | None] = {}

    def watch(self) -> int | None:
        """Start the watchdog; the thread it watches, where its calls can go the short way."""
        if not self.open or self.limit < LOOK_EVERY or not in_main():
            return None
        WATCHDOG.start()
        return MAIN

    def plan(self, error: Exception, began: float) -> Plan | None:
        """The plan for a first failure by this error; None: go the long way."""
        if error.__cause__ is not None or error.__context__ is not None or error.__dict__:
            return None  # it carries more than its class and arguments say
        if CURRENT.get() is not None or REPORTED.get().at >= began:
            return None  # part of a larger incident, or the attempt had something to report
        key = (type(error), error.args)
        try:
            return self.plans[key]
        except KeyError:
            if len(self.plans) >= _PLANS:
                self.plans.clear()
            plan = self.plans[key] = self._make_plan(name(error))
            return plan
        except TypeError:  # arguments that cannot be hashed
            return None

    def _make_plan(self, failure: Failure) -> Plan | None:
        run = self.guard.run()
        run.open(None, 0.0)
        run.record(ev.AttemptFailed(0.0, failure, 0.0, 0.0, may_retry=True))
        decision = run.choose(failure, 0.0, 1.0)
        if not isinstance(decision, ev.Repeat) or failure.retry_after is not None:
            return None
        rung = run.policy.ladder.rungs[decision.rung]
        limit = min(self.own, _FOREVER if rung.seconds is None else rung.seconds)
        return Plan(failure, decision, decision.wait, limit, VOTES[failure.kind] is Vote.BAD)

    def failed(self, plan: Plan, began: float, now: float) -> float | None:
        """Count a failure and schedule its repeat: the seconds to wait; None: go the long way."""
        herd, kind = self.herd, plan.failure.kind
        if herd is not None and not herd.affords(kind):
            return None
        wait = plan.ceiling * random() if self.jitter else plan.ceiling  # noqa: S311  # spreads load, hides nothing
        if now + wait >= began + self.total:
            return None
        if plan.bad:
            self.breaker.ended(None, began, now, _BAD)
        if herd is not None:
            herd.charge(kind)
        return wait

    def succeeded(self, again: float, ended: float) -> None:
        """The repeated call came back."""
        self.breaker.ended(None, again, ended, _GOOD)
        if self.herd is not None:
            self.herd.credit()

    def briefs(self) -> list[Brief]:
        """The latest calls that were saved by one repeat."""
        return [Brief(*values) for values in self.recent]


def unfold(guard: Guard, brief: Brief) -> Run:
    """The run of a brief, up to the repeat that was decided on."""
    run = guard.run()
    run.open(None, brief.began)
    run.record(ev.AttemptFailed(brief.failed, brief.plan.failure, brief.failed - brief.began, 0.0, may_retry=True))
    run.record(ev.Decided(brief.failed, brief.plan.repeat._replace(wait=brief.wait)))
    run.began = brief.again
    return run


def as_attempt(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any]:
    """The call as an attempt: with the rung's request in the place of the first one, or as it was."""

    def attempt(request: Request | None) -> Any:
        if request is None:
            return function(*args, **kwargs)
        return function(request, *args[1:], **kwargs)

    return attempt


def synchronous(function: Callable[..., Any], guard: Guard) -> Callable[..., Any]:
    """The wrapper of a plain function."""
    lane = Lane(guard)
    breaker, herd, limit, timed = lane.breaker, lane.herd or RetryBudget(), lane.limit, lane.timed
    finished, closed, ident, watched = breaker.calls.append, Circuit.CLOSED, threading.get_ident, WATCHDOG.due
    home: int | None = None  # the thread in which calls may go this way: the main one, once it is watched

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        nonlocal home
        if breaker.circuit is not closed or ident() != home:
            home = lane.watch()
            return guard.carry(as_attempt(function, args, kwargs), args, None, guard.run.clock.now())
        began = monotonic()
        due = began + limit
        try:
            watched.append(due)
            value = function(*args, **kwargs)
            watched.pop()
            if timed:
                breaker.ended(None, EPOCH + began, EPOCH + monotonic(), _GOOD)
            else:
                finished(EPOCH + began)
            if herd.low:
                herd.credit()
            return value
        except Exception as error:
            failed: Exception = error
            release(due)
        except Overdue as overdue:
            if release(due) != overdue.depth:
                raise
            failed = TimeUp(limit)
        except BaseException:
            release(due)
            raise
        try:
            return _again(function, lane, args, kwargs, failed, EPOCH + began)
        finally:
            del failed  # its traceback holds this frame: a cycle, and work for the collector

    wrapper.__dict__["__rung__"] = lane
    return wrapper


def _again(
    function: Callable[..., Any],
    lane: Lane,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    failed: Exception,
    began: float,
) -> Any:
    guard = lane.guard
    plan = None if args and isinstance(args[0], Request) else lane.plan(failed, began)
    now = EPOCH + monotonic()
    wait = None if plan is None else lane.failed(plan, began, now)
    if plan is None or wait is None:
        return guard.carry(as_attempt(function, args, kwargs), args, failed, began)
    if wait > 0:
        sleep(wait)
    again = EPOCH + monotonic()
    due = min(again + plan.limit, began + lane.total) - EPOCH
    try:
        WATCHDOG.due.append(due)
        if due - again + EPOCH < LOOK_EVERY:
            WATCHDOG.hurry(due)
        value = function(*args, **kwargs)
        WATCHDOG.due.pop()
    except Exception as error:
        failed = error
        release(due)
    except Overdue as overdue:
        if release(due) != overdue.depth:
            raise
        failed = TimeUp(due + EPOCH - again)
    except BaseException:
        release(due)
        raise
    else:
        ended = EPOCH + monotonic()
        lane.recent.append((began, now, plan, wait, again, ended))
        lane.succeeded(again, ended)
        return value
    run = unfold(guard, Brief(began, now, plan, wait, again, 0.0))
    run.take_reports()
    failure = run.failed(failed)
    return guard.carry_on(run, as_attempt(function, args, kwargs), failure, run.decide(failure))


def asynchronous(function: Callable[..., Any], guard: Guard) -> Callable[..., Any]:
    """The wrapper of a coroutine function."""
    from asyncio import CancelledError

    from rung.engine.timer import OVERDUE, RUNNING, Sweeper, sweeper_here, task_in, was_ours

    lane = Lane(guard)
    breaker, herd, limit, timed = lane.breaker, lane.herd or RetryBudget(), lane.limit, lane.timed
    finished, closed, ident = breaker.calls.append, Circuit.CLOSED, threading.get_ident
    is_open = lane.open and limit >= LOOK_EVERY
    sweeper: Sweeper | None = None

    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        nonlocal sweeper
        if breaker.circuit is not closed or not is_open:
            return await guard.acarry(as_attempt(function, args, kwargs), args, None, guard.run.clock.now())
        # Asking for the running loop is slow in Python 3.11; one with a task at work in this thread is it.
        if sweeper is None or sweeper.thread != ident() or (task := task_in(sweeper.loop)) is None:
            sweeper = sweeper_here()
            task = task_in(sweeper.loop)
        began = monotonic()
        work = function(*args, **kwargs)
        RUNNING[work] = (began + limit, task)
        try:
            value = await work
            del RUNNING[work]
            if OVERDUE:
                was_ours(work, task)  # should it have come back all the same, take our cancellation back
            if timed:
                breaker.ended(None, EPOCH + began, EPOCH + monotonic(), _GOOD)
            else:
                finished(EPOCH + began)
            if herd.low:
                herd.credit()
            return value
        except Exception as error:
            failed: Exception = error
            RUNNING.pop(work, None)
            was_ours(work, task)
        except CancelledError:
            RUNNING.pop(work, None)
            if not was_ours(work, task):
                raise
            failed = TimeUp(limit)
        except BaseException:
            RUNNING.pop(work, None)
            raise
        try:
            return await _aagain(function, lane, args, kwargs, failed, EPOCH + began, sweeper)
        finally:
            del failed  # its traceback holds this frame: a cycle, and work for the collector

    wrapper.__dict__["__rung__"] = lane
    return wrapper


async def _aagain(
    function: Callable[..., Any],
    lane: Lane,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    failed: Exception,
    began: float,
    sweeper: Sweeper,
) -> Any:
    guard = lane.guard
    plan = None if args and isinstance(args[0], Request) else lane.plan(failed, began)
    now = EPOCH + monotonic()
    wait = None if plan is None else lane.failed(plan, began, now)
    if plan is None or wait is None:
        return await guard.acarry(as_attempt(function, args, kwargs), args, failed, began)
    if wait > 0:
        await guard.run.clock.asleep(wait)
    again = EPOCH + monotonic()
    try:
        value = await sweeper.limited(function(*args, **kwargs), min(plan.limit, began + lane.total - again))
    except Exception as error:
        failed = error
    else:
        ended = EPOCH + monotonic()
        lane.recent.append((began, now, plan, wait, again, ended))
        lane.succeeded(again, ended)
        return value
    run = unfold(guard, Brief(began, now, plan, wait, again, 0.0))
    run.take_reports()
    failure = run.failed(failed)
    return await guard.acarry_on(run, as_attempt(function, args, kwargs), failure, run.decide(failure))
