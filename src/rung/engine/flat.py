"""The short way of a guarded call: most succeed at once, and most others when they are repeated once.

No incident, event or request is made on this way. A first repeat is taken by what `decide` said of an
equal failure on a fresh incident, remembered in a plan; it is recorded as a brief of seven values, from
which the very events of the long way can be made (`Brief.events`; a test holds the two together). A journal
is handed a good call as a few values as well (`Lane.story`); a first repeat is told it before it is made (`kept`).
All that is less simple goes the long way. Nothing about recovery is decided here.
"""

from __future__ import annotations

from collections import deque
from random import random
from threading import get_ident
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, NamedTuple

from rung.core import events as ev
from rung.core.breaker import Circuit, Vote
from rung.core.budget import RetryBudget
from rung.core.errors import TimeUp
from rung.core.request import Request
from rung.engine.interrupt import LOOK_EVERY, WATCHDOG, Overdue, in_main, release
from rung.engine.ports import EPOCH
from rung.engine.reports import MAIN_THREAD, REPORTED, Reports, anything, take
from rung.engine.run import CURRENT, name, vote

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.failures import Failure, Kind, Phase
    from rung.engine.guard import Guard
    from rung.engine.reports import Heard
    from rung.engine.run import Run
    from rung.engine.timer import Sweeper

_FOREVER = float("inf")
# Reading a member off an enum class is slow in Python 3.11.
_GOOD, _BAD, _CLOSED = Vote.GOOD, Vote.BAD, Circuit.CLOSED
WATCHED = WATCHDOG.due


class Plan(NamedTuple):
    """What to do at the first failure of this sort: repeat, after a part of `ceiling` seconds."""

    repeat: ev.Repeat
    ceiling: float
    limit: float  # seconds the rung has, for the wait and the repeated attempt
    bad: bool  # the failure counts against the service
    plain: bool  # neither the rung nor an attempt has a limit of its own


class Brief(NamedTuple):
    """A call that failed once and succeeded when repeated."""

    began: float
    failed: float
    failure: Failure
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
        self.finished = self.breaker.calls.append if self.breaker.settings.slow is None else self._timed
        self.later = guard.later or (lambda *_: None)
        self.keep = None if guard.later is None else self._keep
        self.asks = self.keep is not None and policy.learn
        self.recent: deque[tuple[Any, ...]] = deque(maxlen=100)  # briefs
        self.hears = MAIN_THREAD  # a blocking call on the short way runs in the main thread
        self.plans: dict[tuple[Kind, bool, Phase], Plan | None] = {}

    def _timed(self, began: float) -> None:
        self.breaker.ended(None, began, EPOCH + monotonic(), _GOOD)

    def _keep(self, args: tuple[Any, ...], began: float) -> None:
        """Hand a good call to the journal: a few values, of which it makes the events when it writes them."""
        ended, run = EPOCH + monotonic(), self.guard.run
        request = args[0] if args and isinstance(args[0], Request) else None
        heard = take(began, awaited=run.awaited) if anything(began, awaited=run.awaited) else None
        try:
            if CURRENT.get() is None:
                self.later(self.story, request, began, ended, heard)
            else:  # whom it is part of is known here alone
                story = self.story(request, began, ended, heard)
                self.later(lambda: story)
        except Exception as error:  # the call went well, whatever the journal says
            run().crashed("journal", error)

    def story(self, request: Request | None, began: float, ended: float, heard: Heard | None) -> list[ev.Event]:
        """The events of a call that went well at once, as the long way would have recorded them."""
        run = self.guard.run()
        run.open(request, began)
        for at, step in heard.steps if heard is not None else ():
            run.record(ev.StepCompleted(at, step))
        run.record(ev.AttemptSucceeded(ended, ended - began, heard.dollars if heard is not None else 0.0))
        return run.log

    def long_way(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call from its beginning, with everything that can happen on it."""
        guard = self.guard
        return guard.carry(as_attempt(function, args, kwargs), args, None, guard.run.clock.now())

    async def long_way_awaited(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """The same, awaiting."""
        guard = self.guard
        return await guard.acarry(as_attempt(function, args, kwargs), args, None, guard.run.clock.now())

    def watch(self) -> None:
        """Start the watchdog; in the thread it watches calls can go the short way while the circuit is closed."""
        if in_main():
            WATCHDOG.settle(self.breaker)
            if self.breaker.circuit is not _CLOSED:  # asked last: another thread may open it at any moment
                self.breaker.home = None

    def schedule(self, failure: Failure, began: float, now: float) -> tuple[Plan, float] | None:
        """Count a first failure and schedule its repeat: the plan, and the seconds to wait; None: go the long way."""
        said = REPORTED.get() or MAIN_THREAD
        if (
            self.asks  # the journal may know better than the plan
            or CURRENT.get() is not None
            or failure.retry_after is not None
            or said.at >= began
            or self.hears.at >= began
        ):
            return None  # part of a larger incident, or there is more to it than its kind
        evidence, herd = failure.evidence, self.herd
        if evidence.output_started or evidence.side_effects:
            return None
        key = failure.kind, failure.retryable, evidence.phase
        try:
            plan = self.plans[key]
        except KeyError:
            plan = self.plans[key] = self._make_plan(failure)
        if plan is None or (herd is not None and not herd.affords(failure.kind)):
            return None
        wait = plan.ceiling * random() if self.jitter else plan.ceiling  # noqa: S311  # spreads load, hides nothing
        if now + wait >= began + self.total:
            return None
        if plan.bad:
            self.breaker.ended(None, began, now, _BAD)
        if herd is not None:
            herd.charge(failure.kind)
        return plan, wait

    def _make_plan(self, failure: Failure) -> Plan | None:
        run = self.guard.run()
        run.open(None, 0.0)
        run.record(ev.AttemptFailed(0.0, failure, 0.0, 0.0, may_retry=True))
        decision = run.choose(failure, 0.0, 1.0)
        if not isinstance(decision, ev.Repeat):
            return None
        rung = run.policy.ladder.rungs[decision.rung]
        limit = _FOREVER if rung.seconds is None else rung.seconds
        plain = limit == self.own == _FOREVER
        return Plan(decision, decision.wait, limit, vote(failure) is _BAD, plain)

    def briefs(self) -> list[Brief]:
        """The latest calls that were saved by one repeat."""
        return [Brief(*values) for values in self.recent]


def unfold(guard: Guard, brief: Brief) -> Run:
    """The run of a brief, up to the repeat that was decided on."""
    run = guard.run()
    run.open(None, brief.began)
    run.record(ev.AttemptFailed(brief.failed, brief.failure, brief.failed - brief.began, 0.0, may_retry=True))
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
    if lane.limit == _FOREVER:
        return _unlimited(function, lane)
    if not lane.open or lane.limit < LOOK_EVERY:
        return _never_short(function, lane)
    # Few free variables and the rest global: each one is copied on every call.
    breaker, herd, limit, finished = lane.breaker, lane.herd or RetryBudget(), lane.limit, lane.finished
    keep = lane.keep

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if get_ident() != breaker.home:
            lane.watch()
            return lane.long_way(function, args, kwargs)
        began = monotonic()
        due = began + limit
        try:
            WATCHED.append(due)
            value = function(*args, **kwargs)
            WATCHED.pop()
            finished(EPOCH + began)
            if herd.low:
                herd.credit()
            if keep is not None:
                keep(args, EPOCH + began)
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


def _never_short(function: Callable[..., Any], lane: Lane) -> Callable[..., Any]:
    """The wrapper where somebody wants to see every attempt, or a limit is too short for the watchdog's rounds."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return lane.long_way(function, args, kwargs)

    wrapper.__dict__["__rung__"] = lane
    return wrapper


def _never_short_awaited(function: Callable[..., Any], lane: Lane) -> Callable[..., Any]:
    """The same for a coroutine function."""

    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        return await lane.long_way_awaited(function, args, kwargs)

    wrapper.__dict__["__rung__"] = lane
    return wrapper


def _unlimited(function: Callable[..., Any], lane: Lane) -> Callable[..., Any]:
    """The wrapper where no time limit is set: nothing to watch, so it may be called in any thread."""
    breaker, herd, finished, is_open = lane.breaker, lane.herd or RetryBudget(), lane.finished, lane.open
    keep = lane.keep

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if breaker.circuit is not _CLOSED or not is_open:
            return lane.long_way(function, args, kwargs)
        if REPORTED.get() is None:
            REPORTED.set(Reports())  # what it starts shares this, whichever thread it is in
        began = monotonic()
        try:
            value = function(*args, **kwargs)
            finished(EPOCH + began)
            if herd.low:
                herd.credit()
            if keep is not None:
                keep(args, EPOCH + began)
            return value
        except Exception as error:
            failed: Exception = error
        try:
            return lane.guard.carry(as_attempt(function, args, kwargs), args, failed, EPOCH + began)
        finally:
            del failed  # as above

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
    now = EPOCH + monotonic()
    failure = name(failed)
    scheduled = None if args and isinstance(args[0], Request) else lane.schedule(failure, began, now)
    if scheduled is None:
        try:
            return guard.carry(as_attempt(function, args, kwargs), args, failed, began)
        finally:
            del failed  # as above
    plan, wait = scheduled
    if lane.keep is not None:
        run = unfold(guard, Brief(began, now, failure, plan, wait, now, 0.0))
        run.error = failed
        del failed  # as above
        return guard.repeat(run, as_attempt(function, args, kwargs))
    return _repeated(function, lane, args, kwargs, Brief(began, now, failure, plan, wait, 0.0, 0.0))


def _repeated(
    function: Callable[..., Any], lane: Lane, args: tuple[Any, ...], kwargs: dict[str, Any], brief: Brief
) -> Any:
    guard, began, now, failure, plan, wait = lane.guard, *brief[:5]
    if wait > 0:
        sleep(wait)
    again = EPOCH + monotonic()
    if lane.breaker.circuit is not _CLOSED:  # the repeat is refused, as any call now is
        run = unfold(guard, Brief(began, now, failure, plan, wait, again, 0.0))
        return guard.carry_on(run, as_attempt(function, args, kwargs), None, None)
    due = began + lane.total - EPOCH
    if not plan.plain:
        due = min(due, again + lane.own - EPOCH, now + plan.limit - EPOCH)
    try:
        WATCHED.append(due)
        if due - again + EPOCH < LOOK_EVERY:
            WATCHDOG.hurry(due)
        value = function(*args, **kwargs)
        WATCHED.pop()
    except Exception as error:
        failed: Exception = error
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
        lane.recent.append((began, now, failure, plan, wait, again, ended))
        lane.finished(again)
        if lane.herd is not None:
            lane.herd.credit()
        return value
    run = unfold(guard, Brief(began, now, failure, plan, wait, again, 0.0))
    run.take_reports()
    failure = run.failed(failed)
    del failed  # as above
    return guard.carry_on(run, as_attempt(function, args, kwargs), failure, run.decide(failure))


def asynchronous(function: Callable[..., Any], guard: Guard) -> Callable[..., Any]:
    """The wrapper of a coroutine function."""
    lane = Lane(guard)
    guard.run.awaited = True
    lane.hears = Reports()  # nothing but what its own task hears
    if not lane.open or lane.limit < LOOK_EVERY:
        return _never_short_awaited(function, lane)
    return _awaited(function, lane)


def _awaited(function: Callable[..., Any], lane: Lane) -> Callable[..., Any]:
    """The wrapper where most calls go the short way."""
    from asyncio import CancelledError

    from rung.engine.timer import OVERDUE, RUNNING, sweeper_here, task_in, was_ours

    breaker, herd, limit, finished = lane.breaker, lane.herd or RetryBudget(), lane.limit, lane.finished
    keep = lane.keep
    sweeper: Sweeper | None = None

    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        nonlocal sweeper
        if breaker.circuit is not _CLOSED:
            return await lane.long_way_awaited(function, args, kwargs)
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
                was_ours(work, task)  # should it have come back all the same, take our cancellation back
            finished(EPOCH + began)
            if herd.low:
                herd.credit()
            if keep is not None:
                keep(args, EPOCH + began)
            return value
        except Exception as error:
            failed: Exception = error
            RUNNING.pop(work, None)
            was_ours(work, task)
        except CancelledError:
            RUNNING.pop(work, None)
            here.task = None  # how often it was cancelled is to be counted anew
            if not was_ours(work, task):
                raise
            failed = TimeUp(limit)
        except BaseException:
            RUNNING.pop(work, None)
            was_ours(work, task)
            raise
        try:
            return await _aagain(function, lane, args, kwargs, failed, EPOCH + began, here)
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
    now = EPOCH + monotonic()
    failure = name(failed)
    scheduled = None if args and isinstance(args[0], Request) else lane.schedule(failure, began, now)
    if scheduled is None:
        try:
            return await guard.acarry(as_attempt(function, args, kwargs), args, failed, began)
        finally:
            del failed  # as above
    plan, wait = scheduled
    if lane.keep is not None:
        run = unfold(guard, Brief(began, now, failure, plan, wait, now, 0.0))
        run.error = failed
        del failed  # as above
        return await guard.arepeat(run, as_attempt(function, args, kwargs))
    if wait > 0:
        await guard.run.clock.asleep(wait)
    again = EPOCH + monotonic()
    if lane.breaker.circuit is not _CLOSED:  # as above
        run = unfold(guard, Brief(began, now, failure, plan, wait, again, 0.0))
        return await guard.acarry_on(run, as_attempt(function, args, kwargs), None, None)
    limit = min(lane.own, now + plan.limit - again, began + lane.total - again)
    try:
        value = await sweeper.limited(function(*args, **kwargs), limit)
    except Exception as error:
        failed = error
    else:
        ended = EPOCH + monotonic()
        lane.recent.append((began, now, failure, plan, wait, again, ended))
        lane.finished(again)
        if lane.herd is not None:
            lane.herd.credit()
        return value
    run = unfold(guard, Brief(began, now, failure, plan, wait, again, 0.0))
    run.take_reports()
    failure = run.failed(failed)
    del failed  # as above
    return await guard.acarry_on(run, as_attempt(function, args, kwargs), failure, run.decide(failure))
