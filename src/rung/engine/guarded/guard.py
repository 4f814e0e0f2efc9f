"""`guarded`: makes a function safe and keeps its signature; it raises the last error, the path as notes.

A call whose first argument is a `Request` gets the whole ladder; any other call cannot be changed, only
repeated. Generators are in `streams`.
"""

from __future__ import annotations

import functools
import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from rung.core.domain.errors import ConfigError
from rung.core.domain.outcome import SUCCESS_STATUSES, annotate
from rung.core.domain.request import Request
from rung.core.policy.parser import policy as make_policy
from rung.core.policy.policy import Policy
from rung.core.recovery.decide import FirstRetryCache
from rung.engine.guarded import fast_path, generators
from rung.engine.loop.run import RecoveryRun
from rung.engine.ports import JournalPorts
from rung.engine.recover import arun_to_end, finish_run, run_attributes, run_to_end

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from rung.core.domain.events import Decision
    from rung.core.domain.failures import Failure
    from rung.engine.ports import LazyEventLog
    from rung.engine.recover import Ports

F = TypeVar("F", bound="Callable[..., Any]")
_ALLOWED: Final = "a function, or a policy or ladder name before one"


class GuardedFunction:
    """The policy and ports of one guarded function, and the way through recovery for its calls."""

    def __init__(self, function: Any, policy: Policy, ports: Ports, *, idempotent: bool) -> None:
        key = ports.get("key") or f"{function.__module__}.{function.__qualname__}"
        if callable(key):
            raise ConfigError("key", key, "a text: a guarded function has one circuit breaker")
        equipped = run_attributes(policy, {**ports, "key": key}, idempotent=idempotent)
        equipped["breaker"] = equipped.pop("breakers").get(key)  # one for all calls
        equipped["lazy_log"] = JournalPorts.of(ports.get("journal")).lazy_log
        equipped["first_repeats"] = FirstRetryCache(policy)
        for port in ("jitter", "check", "asker", "breaker_key"):
            if equipped.get(port) is not None:
                equipped[port] = staticmethod(equipped[port])  # a plain function, not a method of the run
        self.policy = policy
        self.run: type[RecoveryRun] = type("GuardedRun", (RecoveryRun,), equipped)
        # The fast path knows the real clock and chance only, and nobody who wants to see every attempt. A journal
        # must be able to take a good call later.
        log: LazyEventLog | None = equipped["lazy_log"]
        self.later = None if log is None else log.append_lazy
        wants_all = ("clock", "jitter", "check", "session")
        seen = any(ports.get(name) is not None for name in wants_all) or bool(ports.get("listeners"))
        self.flat = policy.budget.dollars is None and not seen and (equipped["journal"] is None or log is not None)

    def begin(
        self, args: tuple[Any, ...], failed: Exception | None, began: float | None
    ) -> tuple[RecoveryRun, Failure | None, Decision | None]:
        """A run for one call: from its beginning, or from its first failure and the decision about it."""
        run = self.run()
        run.open(args[0] if args and isinstance(args[0], Request) else None, began or run.clock.now())
        if failed is None:
            return run, None, None
        run.take_reports()
        failure = run.failed(failed)
        return run, failure, run.decide(failure)

    def carry(
        self,
        attempt: Callable[..., Any],
        args: tuple[Any, ...],
        failed: Exception | None = None,
        began: float | None = None,
    ) -> Any:
        """Recover a call, from its beginning or from its first failure: its value, or its last error."""
        run, failure, decision = self.begin(args, failed, began)
        del failed  # should it be raised again, its traceback holds this frame: a cycle
        run_to_end(run, attempt, failure, decision)
        return _conclude(run)

    async def acarry(
        self,
        attempt: Callable[..., Any],
        args: tuple[Any, ...],
        failed: Exception | None = None,
        began: float | None = None,
    ) -> Any:
        """Recover a call, awaiting."""
        run, failure, decision = self.begin(args, failed, began)
        del failed  # as above
        await arun_to_end(run, attempt, failure, decision)
        return _conclude(run)


@overload
def guarded(target: F) -> F: ...
@overload
def guarded(target: Policy | str = "call", *, idempotent: bool = False, **ports: Unpack[Ports]) -> Callable[[F], F]: ...
def guarded(target: Any = "call", *, idempotent: bool = False, **ports: Unpack[Ports]) -> Any:
    """Make a function, coroutine function or (async) generator function safe.

    Use it bare, or with a policy (or the name of a ladder) and any of `Ports`. A generator is begun again
    only while it has yielded nothing; with `idempotent=True` also later, and what the caller already has
    is passed over.
    """
    if inspect.isroutine(target):
        return _guard(target, make_policy("call"), ports, idempotent=idempotent)
    policy = make_policy(target) if isinstance(target, str) else target
    if not isinstance(policy, Policy):
        raise ConfigError("guarded", target, _ALLOWED)
    return lambda function: _guard(function, policy, ports, idempotent=idempotent)


def _guard(function: Any, policy: Policy, ports: Ports, *, idempotent: bool) -> Any:
    if isinstance(function, staticmethod | classmethod):
        return type(function)(_guard(function.__func__, policy, ports, idempotent=idempotent))
    if not inspect.isroutine(function):
        raise ConfigError("guarded", function, _ALLOWED)
    guard = GuardedFunction(function, policy, ports, idempotent=idempotent)
    if inspect.isasyncgenfunction(function):
        wrapper = generators.async_generator(function, guard)
    elif inspect.isgeneratorfunction(function):
        wrapper = generators.generator(function, guard)
    elif inspect.iscoroutinefunction(function):
        wrapper = fast_path.asynchronous(function, guard)
    else:
        wrapper = fast_path.synchronous(function, guard)
    return functools.update_wrapper(wrapper, function)


def _conclude(run: RecoveryRun) -> Any:
    """The value, or the last error with the path."""
    if run.incident.status in SUCCESS_STATUSES:
        return run.value
    outcome = finish_run(run)
    if outcome.error is None:
        return outcome.unwrap()
    try:
        raise annotate(outcome.error, replace(outcome, error=None))
    finally:
        del outcome  # the error's traceback holds this frame: a cycle
