"""`guarded`: a decorator that adds recovery to a function and keeps its signature.

If recovery fails, the last error is raised, with the recovery path as notes. A call whose first argument is a `Request`
uses the whole ladder; any other call cannot be changed, only retried. Generators are in `generators`.
"""

from __future__ import annotations

import functools
import inspect
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from rung.core.domain.errors import ConfigError
from rung.core.domain.outcome import SUCCESS_STATUSES, annotate
from rung.core.domain.request import Request
from rung.core.policy.breaker import Breaker, BreakerSettings
from rung.core.policy.parser import policy as make_policy
from rung.core.policy.policy import Policy
from rung.engine.arguments import check_ports
from rung.engine.guarded import fast_path, generators
from rung.engine.guarded.first_retry import FirstRetries
from rung.engine.loop.run import RecoveryRun
from rung.engine.ports import EPOCH, JournalPorts
from rung.engine.recover import arun_to_end, count_call, finish_run, run_attributes, run_to_end
from rung.engine.timeouts.sync_timeout import call_with_timeout

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from rung.engine.guarded.first_retry import FirstRetry
    from rung.engine.ports import LazyEventLog
    from rung.engine.recover import Ports

F = TypeVar("F", bound="Callable[..., Any]")
_NO_REQUEST: Final = (None,)  # the argument of an attempt that calls the function with its own arguments
_TARGET_TYPES: Final = "a function, a policy or the name of a ladder"


class GuardedFunction:
    """Policy and ports of one guarded function, and the recovery of its calls."""

    def __init__(self, function: Any, policy: Policy, ports: Ports, *, idempotent: bool) -> None:
        key = ports.get("key") or f"{function.__module__}.{function.__qualname__}"
        if callable(key):
            raise ConfigError("key", key, "a string: a guarded function has one circuit breaker")
        is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
        check_ports({**ports, "key": key}, blocking=not is_async)
        attributes = run_attributes(policy, {**ports, "key": key}, idempotent=idempotent)
        breakers = attributes.pop("breakers")  # None: no circuit is ever opened
        attributes["breaker"] = Breaker(BreakerSettings(enabled=False)) if breakers is None else breakers.get(key)
        attributes["lazy_log"] = JournalPorts.of(ports.get("journal")).lazy_log
        for port in ("jitter", "check", "operator", "breaker_key", "investigate"):
            if attributes.get(port) is not None:
                attributes[port] = staticmethod(attributes[port])  # else it would become a method of the run
        self.policy = policy
        self.run_class: type[RecoveryRun] = type("GuardedRun", (RecoveryRun,), attributes)
        # The fast path uses the system clock and no randomness, and creates no events that a listener, a check or a
        # session needs. A journal must support deferred writes.
        log: LazyEventLog | None = attributes["lazy_log"]
        self.append_lazy = None if log is None else log.append_lazy
        engine_only_ports = ("clock", "jitter", "check", "session")
        needs_engine = any(ports.get(name) is not None for name in engine_only_ports) or bool(ports.get("listeners"))
        self.uses_fast_path = (
            policy.budget.dollars is None and not needs_engine and (attributes["journal"] is None or log is not None)
        )

        can_retry = self.uses_fast_path and not self.run_class.has_observers
        self.first_retries = FirstRetries(self.run_class) if can_retry else None

    def open_run(self, args: tuple[Any, ...], began: float | None) -> RecoveryRun:
        """Open a run for one call."""
        run = self.run_class()
        request = args[0] if args and isinstance(args[0], Request) else None
        if request is not None and run.session is not None and began is None:
            request = run.session.first_request(request)
        run.open(request, began or run.clock.now())
        return run

    def recover_call(
        self,
        attempt: Callable[..., Any],
        args: tuple[Any, ...],
        failed: Exception | None = None,
        began: float | None = None,
    ) -> Any:
        """Run a call with recovery, from its start or from its first failure. Return its value or raise its last error."""
        if failed is not None and began is not None and self.first_retries is not None:
            retry = self.first_retries.decide(args, failed, began)
            if retry is not None:
                del failed  # if it is raised again, its traceback references this frame: a reference cycle
                return self._retry(self.first_retries, retry, attempt)
        run = self.open_run(args, began)
        try:
            return _recover(run, attempt, failed)
        finally:
            del failed  # a reference cycle, as above

    def _retry(self, retries: FirstRetries, retry: FirstRetry, attempt: Callable[..., Any]) -> Any:
        """Make the first retry, and leave everything after it to the engine."""
        failed: Exception | None = None
        began = retry.failed_at
        try:
            if retry.decision.wait > 0:
                self.run_class.clock.sleep(retry.decision.wait)
            began = EPOCH + monotonic()
            seconds = retries.seconds(retry, began)
            if seconds is None or seconds > 0:
                value = call_with_timeout(attempt, _NO_REQUEST, seconds)
                retries.record_success(began)
                return value
        except Exception as error:
            failed = error
        except BaseException as error:
            retries.record_cancelled(retry, began, error)
            raise
        try:
            return _recover(retries.open_run(retry, began), attempt, failed)
        finally:
            del failed  # a reference cycle, as above

    async def arecover_call(
        self,
        attempt: Callable[..., Any],
        args: tuple[Any, ...],
        failed: Exception | None = None,
        began: float | None = None,
    ) -> Any:
        """Run a call with recovery, awaiting."""
        if failed is not None and began is not None and self.first_retries is not None:
            retry = self.first_retries.decide(args, failed, began)
            if retry is not None:
                del failed  # a reference cycle, as above
                return await self._aretry(self.first_retries, retry, attempt)
        run = self.open_run(args, began)
        try:
            return await _arecover(run, attempt, failed)
        finally:
            del failed  # a reference cycle, as above

    async def _aretry(self, retries: FirstRetries, retry: FirstRetry, attempt: Callable[..., Any]) -> Any:
        """Make the first retry, awaiting."""
        from rung.engine.timeouts.async_timeout import await_with_timeout

        failed: Exception | None = None
        began = retry.failed_at
        try:
            if retry.decision.wait > 0:
                await self.run_class.clock.asleep(retry.decision.wait)
            began = EPOCH + monotonic()
            seconds = retries.seconds(retry, began)
            if seconds is None or seconds > 0:
                value = await await_with_timeout(attempt(None), seconds)
                retries.record_success(began)
                return value
        except Exception as error:
            failed = error
        except BaseException as error:
            retries.record_cancelled(retry, began, error)
            raise
        try:
            return await _arecover(retries.open_run(retry, began), attempt, failed)
        finally:
            del failed  # a reference cycle, as above


@overload
def guarded(target: F) -> F: ...
@overload
def guarded(target: Policy | str = "call", *, idempotent: bool = False, **ports: Unpack[Ports]) -> Callable[[F], F]: ...
def guarded(target: Any = "call", *, idempotent: bool = False, **ports: Unpack[Ports]) -> Any:
    """Add recovery to a function, coroutine function or (async) generator function.

    Use it bare, or with a policy (or the name of a ladder) and any of `Ports`. A generator is restarted only while it
    has yielded nothing; with `idempotent=True` also later, and the items that the caller already has are skipped.
    """
    if inspect.isroutine(target):
        return _wrap(target, make_policy("call"), ports, idempotent=idempotent)
    policy = make_policy(target) if isinstance(target, str) else target
    if not isinstance(policy, Policy):
        raise ConfigError("guarded", target, _TARGET_TYPES)
    return lambda function: _wrap(function, policy, ports, idempotent=idempotent)


def _wrap(function: Any, policy: Policy, ports: Ports, *, idempotent: bool) -> Any:
    if isinstance(function, staticmethod | classmethod):
        return type(function)(_wrap(function.__func__, policy, ports, idempotent=idempotent))
    if not inspect.isroutine(function):
        raise ConfigError("guarded", function, _TARGET_TYPES)
    guard = GuardedFunction(function, policy, ports, idempotent=idempotent)
    if inspect.isasyncgenfunction(function):
        wrapper = generators.wrap_async_generator(function, guard)
    elif inspect.isgeneratorfunction(function):
        wrapper = generators.wrap_generator(function, guard)
    elif inspect.iscoroutinefunction(function):
        wrapper = fast_path.wrap_async(function, guard)
    else:
        wrapper = fast_path.wrap_sync(function, guard)
    return functools.update_wrapper(wrapper, function)


def _recover(run: RecoveryRun, attempt: Callable[..., Any], failed: Exception | None) -> Any:
    """Drive a run to its end, after the failure of its last attempt if there is one."""
    if failed is None:
        count_call(run)
        run_to_end(run, attempt)
    else:
        run.collect_reports()
        failure = run.record_error(failed)
        del failed  # if it is raised again, its traceback references this frame: a reference cycle
        run_to_end(run, attempt, failure, run.decide(failure))
    return _value_or_raise(run)


async def _arecover(run: RecoveryRun, call: Callable[..., Any], failed: Exception | None) -> Any:
    """Drive a run to its end, awaiting."""

    async def attempt(request: Request | None) -> Any:  # a coroutine function: it is not called in a thread
        return await call(request)

    if failed is None:
        count_call(run)
        await arun_to_end(run, attempt)
    else:
        run.collect_reports()
        failure = run.record_error(failed)
        del failed  # a reference cycle, as above
        await arun_to_end(run, attempt, failure, run.decide(failure))
    return _value_or_raise(run)


def _value_or_raise(run: RecoveryRun) -> Any:
    """Return the value, or raise the last error with the recovery path as notes."""
    if run.incident.status in SUCCESS_STATUSES:
        return run.value
    outcome = finish_run(run)
    if outcome.error is None:
        return outcome.unwrap()
    try:
        raise annotate(outcome.error, replace(outcome, error=None))
    finally:
        del outcome  # the error's traceback references this frame: a reference cycle
