"""`guarded`: makes a function safe and keeps its signature; it raises the last error, the path as notes.

Most calls succeed at once, so that path is flat: no incident, no request, no event is made until
something fails. A call whose first argument is a `Request` gets the whole ladder; any other call
cannot be changed, only repeated.
"""

from __future__ import annotations

import functools
import inspect
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from rung.core.breaker import Circuit, Permit
from rung.core.budget import RetryBudget
from rung.core.config import policy as make_policy
from rung.core.errors import ConfigError, TimeUp
from rung.core.evidence import evidence_of
from rung.core.failures import Phase
from rung.core.outcome import GOOD, marked
from rung.core.request import Request
from rung.engine import interrupt, timer
from rung.engine.loops import adrive, drive
from rung.engine.ports import EPOCH
from rung.engine.recover import ended, equip, stopped
from rung.engine.run import CURRENT, SYSTEM_CLOCK, Run
from rung.engine.shared import BREAKERS, RETRY_BUDGET
from rung.engine.step import Raised, recovery

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Mapping

    from rung.core.policy import Policy
    from rung.engine.ports import Clock

F = TypeVar("F", bound="Callable[..., Any]")
_UNLIMITED: Final = RetryBudget()


class Guard:
    """The policy and ports of one guarded function."""

    def __init__(
        self, function: Callable[..., Any], policy: Policy, ports: Mapping[str, Any], *, idempotent: bool
    ) -> None:
        equip(Run(policy), ports)  # a wrong name is found where it was written, not at the first failure
        self.policy = policy
        self.idempotent = idempotent
        self.key = ports.get("key") or f"{function.__module__}.{function.__qualname__}"
        self.ports = {**ports, "key": self.key}
        self.breaker = ports.get("breakers", BREAKERS).get(self.key)
        self.retry_budget = ports.get("retry_budget", RETRY_BUDGET)
        limits = [seconds for seconds in (policy.attempt_seconds, policy.budget.seconds) if seconds is not None]
        self.limit = min(limits, default=float("inf"))
        # The flat path knows the real clock only, and nobody who wants to see every attempt.
        wants_all = ("clock", "journal", "check", "session")
        self.flat = policy.budget.dollars is None and not any(ports.get(name) for name in wants_all)

    def now(self) -> float:
        """The time, by the clock this guard was given."""
        clock: Clock = self.ports.get("clock", SYSTEM_CLOCK)
        return clock.now()

    def run(self, arguments: tuple[Any, ...], began: float) -> Run:
        """A run for one call of the function."""
        run = Run(self.policy)
        equip(run, self.ports)
        request = arguments[0] if arguments and isinstance(arguments[0], Request) else None
        run.open(request, began, idempotent=self.idempotent)
        return run

    def conclude(self, run: Run) -> Any:
        """The value, or the last error with the path."""
        if run.incident.status in GOOD:
            return run.value
        outcome = ended(run)
        if outcome.error is None:
            return outcome.unwrap()
        raise marked(outcome.error, outcome)


@overload
def guarded(target: F) -> F: ...
@overload
def guarded(target: Policy | str = "call", *, idempotent: bool = False, **ports: Any) -> Callable[[F], F]: ...
def guarded(target: Any = "call", *, idempotent: bool = False, **ports: Any) -> Any:
    """Make a function, coroutine function or (async) generator function safe.

    Use it bare, or with a policy (or the name of a ladder) and any of `Ports`. A generator is begun again
    only while it has yielded nothing; with `idempotent=True` also later, and what the caller already has
    is passed over.
    """
    if inspect.isfunction(target) or inspect.ismethod(target):
        return _guard(target, make_policy("call"), {}, idempotent=False)
    policy = make_policy(target) if isinstance(target, str) else target
    return lambda function: _guard(function, policy, ports, idempotent=idempotent)


def _guard(function: Any, policy: Policy, ports: Mapping[str, Any], *, idempotent: bool) -> Any:
    if not callable(function):
        raise ConfigError("guarded", function, "a function, or a policy or ladder name before one")
    guard = Guard(function, policy, ports, idempotent=idempotent)
    if inspect.isasyncgenfunction(function):
        wrapper = _async_generator(function, guard)
    elif inspect.isgeneratorfunction(function):
        wrapper = _generator(function, guard)
    elif inspect.iscoroutinefunction(function):
        wrapper = _async(function, guard)
    else:
        wrapper = _sync(function, guard)
    functools.update_wrapper(wrapper, function)
    wrapper.__dict__["__rung_guard__"] = guard
    return wrapper


def _sync(function: Callable[..., Any], guard: Guard) -> Callable[..., Any]:
    breaker, herd, dog = guard.breaker, guard.retry_budget or _UNLIMITED, interrupt.WATCHDOG
    finished, armed, keys, slow, closed = breaker.calls.append, dog.armed, dog.keys, breaker.slow, Circuit.CLOSED
    ident, main, limit = interrupt.threading.get_ident, interrupt.MAIN, guard.limit
    anywhere = guard.flat and limit == float("inf")
    in_main = guard.flat and interrupt.SIGNAL is not None

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        began = monotonic()
        if breaker.circuit is not closed or not (anywhere or (in_main and ident() == main)):
            return _carry(_attempt(function, args, kwargs), guard, args, None, guard.now())
        key = next(keys)
        armed[key] = due = began + limit
        if due < dog.wakes_at:
            dog.hurry(due)
        try:
            try:
                value = function(*args, **kwargs)
            except Exception as error:
                failed: Exception = error
                interrupt.disarm(key)
            else:
                if armed.pop(key, None) is not None:
                    now = monotonic()
                    finished((EPOCH + began, EPOCH + now, now - began > slow))
                    if herd.tokens < herd.capacity:
                        herd.credit()
                    return value
                interrupt.disarm(key)
                failed = TimeUp(limit)
        except interrupt.Overdue as overdue:
            if overdue.key != key:
                raise
            failed = TimeUp(limit)
        return _carry(_attempt(function, args, kwargs), guard, args, failed, EPOCH + began)

    return wrapper


def _async(function: Callable[..., Any], guard: Guard) -> Callable[..., Any]:
    breaker, herd = guard.breaker, guard.retry_budget or _UNLIMITED
    finished, slow, closed, limit, flat = breaker.calls.append, breaker.slow, Circuit.CLOSED, guard.limit, guard.flat

    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        began = monotonic()
        if breaker.circuit is not closed or not flat:
            return await _acarry(_attempt(function, args, kwargs), guard, args, None, guard.now())
        work = function(*args, **kwargs)
        try:
            try:
                pending = work.send(None)
            except StopIteration as done:
                value = done.value
            else:
                value = await timer.finish(work, pending, limit)
        except Exception as error:
            failed: Exception = error
        else:
            now = monotonic()
            finished((EPOCH + began, EPOCH + now, now - began > slow))
            if herd.tokens < herd.capacity:
                herd.credit()
            return value
        return await _acarry(_attempt(function, args, kwargs), guard, args, failed, EPOCH + began)

    return wrapper


def _carry(attempt: Callable[..., Any], guard: Guard, args: Any, failed: Exception | None, began: float) -> Any:
    run = guard.run(args, began)
    token = CURRENT.set(run)
    try:
        drive(recovery(run, _first(run, failed)), attempt, run.clock)
    except BaseException as error:
        stopped(error, run)
        raise
    finally:
        CURRENT.reset(token)
    return guard.conclude(run)


async def _acarry(attempt: Callable[..., Any], guard: Guard, args: Any, failed: Exception | None, began: float) -> Any:
    run = guard.run(args, began)
    token = CURRENT.set(run)
    try:
        await adrive(recovery(run, _first(run, failed)), attempt, run.clock)
    except BaseException as error:
        stopped(error, run)
        raise
    finally:
        CURRENT.reset(token)
    return guard.conclude(run)


def _first(run: Run, failed: Exception | None) -> Raised | None:
    if failed is None:
        return None
    run.seconds = run.clock.now() - run.began
    if run.breaker is not None:
        run.permit = Permit(run.breaker.generation, probe=False)
    return Raised(failed)


def _attempt(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any]:
    """The call as an attempt: with the rung's request in the place of the first one, or as it was."""

    def attempt(request: Request | None) -> Any:
        if request is None:
            return function(*args, **kwargs)
        return function(request, *args[1:], **kwargs)

    return attempt


class _Stream:
    """A generator that has been begun: its next item, or that it is over."""

    def __init__(self, source: Any, given: int) -> None:
        self.source = source
        self.given = given
        self.over = False
        self.result: Any = None
        self.item: Any = None

    def begin(self) -> _Stream:
        """Up to the first item the caller does not have yet."""
        try:
            for _ in range(self.given + 1):
                self.item = next(self.source)
        except StopIteration as end:
            self.over, self.result = True, end.value
        return self

    async def abegin(self) -> _Stream:
        """The same, awaiting."""
        try:
            for _ in range(self.given + 1):
                self.item = await anext(self.source)
        except StopAsyncIteration:
            self.over = True
        return self


def _generator(function: Callable[..., Any], guard: Guard) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        given, failed = 0, None
        while True:
            start = _attempt(lambda *a, **k: _Stream(function(*a, **k), given).begin(), args, kwargs)
            stream = _carry(start, guard, args, failed, guard.now())
            try:
                while not stream.over:
                    sent = yield stream.item
                    given += 1
                    try:
                        stream.item = next(stream.source) if sent is None else stream.source.send(sent)
                    except StopIteration as end:
                        return end.value
                return stream.result
            except Exception as error:
                failed = _seen(error)
            finally:
                stream.source.close()

    return wrapper


def _async_generator(function: Callable[..., Any], guard: Guard) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        given, failed = 0, None
        while True:
            start = _attempt(lambda *a, **k: _Stream(function(*a, **k), given).abegin(), args, kwargs)
            stream = await _acarry(start, guard, args, failed, guard.now())
            try:
                while not stream.over:
                    sent = yield stream.item
                    given += 1
                    try:
                        stream.item = await (anext(stream.source) if sent is None else stream.source.asend(sent))
                    except StopAsyncIteration:
                        return
                return
            except Exception as error:
                failed = _seen(error)
            finally:
                await stream.source.aclose()

    return wrapper


def _seen(error: Exception) -> Exception:
    """The same error, as evidence that the caller already has a part of the output."""
    evidence = evidence_of(error)
    error.__dict__["__rung_evidence__"] = replace(evidence, phase=Phase.STREAM, output_started=True)
    return error
