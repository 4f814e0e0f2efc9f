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
from rung.engine.default_journal import default_journal, has_default_journal
from rung.engine.guarded import fast_path, followed_policy, generators
from rung.engine.guarded.first_retry import FirstRetries
from rung.engine.guarded.followed_policy import FollowedPolicy
from rung.engine.guarded.request_parameter import check_models
from rung.engine.loop.run import RecoveryRun
from rung.engine.loop.run_factory import count_call, run_attributes
from rung.engine.loop.run_to_end import arun_to_end, finish_run, run_to_end
from rung.engine.ports.clock import EPOCH
from rung.engine.ports.journal import JournalPorts, StoredPolicies
from rung.engine.recover import work_name
from rung.engine.timeouts.sync_timeout import call_with_timeout

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from rung.engine.guarded.first_retry import FirstRetry
    from rung.engine.ports.journal import LazyEventLog
    from rung.engine.recovery_arguments import Ports

F = TypeVar("F", bound="Callable[..., Any]")
_NO_REQUEST: Final = (None,)  # the argument of an attempt that calls the function with its own arguments
DEFAULT_LADDER: Final = "call"
_STORED_POLICY: Final = object()  # the default: the policy of the journal's project
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
        attributes["log_name"], attributes["raises"] = ports.get("key") or work_name(function), True
        self.may_use_default_journal = "journal" not in ports
        if self.may_use_default_journal:
            attributes["before_failure"] = use_default_journal
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
        if run.listeners and self._is_recorded:  # they are told of events before the first failure
            use_default_journal(run)
        request = args[0] if args and isinstance(args[0], Request) else None
        if request is not None and run.session is not None and began is None:
            request = run.session.first_request(request)
        run.open(request, began or run.clock.now())
        return run

    @property
    def _is_recorded(self) -> bool:
        """Whether a failing call is recorded in the journal that the environment names."""
        return self.may_use_default_journal and has_default_journal()

    def recover_call(
        self,
        attempt: Callable[..., Any],
        args: tuple[Any, ...],
        failed: Exception | None = None,
        began: float | None = None,
    ) -> Any:
        """Run a call with recovery, from its start or from its first failure. Return its value or raise its last error."""
        if failed is not None and began is not None and self.first_retries is not None and not self._is_recorded:
            retry = self.first_retries.decide(args, failed, began)
            if retry is not None:
                del failed  # if it is raised again, its traceback references this frame: a reference cycle
                try:
                    return self._retry(self.first_retries, retry, attempt)
                finally:
                    del retry  # it holds the error, too
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
                retries.record_success(retry, began)
                return value
        except Exception as error:
            failed = error
        except BaseException as error:
            retries.record_cancelled(retry, began, error)
            raise
        try:
            return _recover(retries.open_run(retry, began), attempt, failed)
        finally:
            del failed, retry  # a reference cycle, as above

    async def arecover_call(
        self,
        attempt: Callable[..., Any],
        args: tuple[Any, ...],
        failed: Exception | None = None,
        began: float | None = None,
    ) -> Any:
        """Run a call with recovery, awaiting."""
        if failed is not None and began is not None and self.first_retries is not None and not self._is_recorded:
            retry = self.first_retries.decide(args, failed, began)
            if retry is not None:
                del failed  # a reference cycle, as above
                try:
                    return await self._aretry(self.first_retries, retry, attempt)
                finally:
                    del retry  # it holds the error, too
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
                retries.record_success(retry, began)
                return value
        except Exception as error:
            failed = error
        except BaseException as error:
            retries.record_cancelled(retry, began, error)
            raise
        try:
            return await _arecover(retries.open_run(retry, began), attempt, failed)
        finally:
            del failed, retry  # a reference cycle, as above


@overload
def guarded(target: F, *, idempotent: bool = False, **ports: Unpack[Ports]) -> F: ...
@overload
def guarded(target: Policy | str = ..., *, idempotent: bool = False, **ports: Unpack[Ports]) -> Callable[[F], F]: ...
def guarded(target: Any = _STORED_POLICY, *, idempotent: bool = False, **ports: Unpack[Ports]) -> Any:
    """Add recovery to a function, coroutine function or (async) generator function, which keeps its signature.

    Use it bare (`@rung.guarded`), or with a policy and keyword arguments (`@rung.guarded("call", check=check)`). If recovery
    fails, the last error is raised, with the recovery path as notes (`__notes__`). A function whose first parameter is a
    `rung.Request` gets changed requests and uses the whole ladder. Any other call is only repeated. A call that succeeds at
    once costs less than a microsecond. Failures are logged to the logger `rung`.

    Args:
        target: The function, or else the policy: a `rung.Policy`, or the name of a ladder. Default: the policy of the journal's
            project, as set in the service or in rung.toml; the ladder `call` unless they name one, or without a journal.
        idempotent: Whether a generator may be restarted after it has yielded items; the items that the caller already has are
            skipped. Default: False, it is restarted only before its first item.
        journal: Journal that records each event before the engine acts on it, from `rung.journal(PATH)`. Default: the one that
            the environment variable `RUNG_JOURNAL` names, else none; None: none.
        check: Function that validates each result: `check(value)`. It returns None or True for a good result, else False, a
            text, evidence, a failure or a verdict. A check that raises accepts nothing. Default: every result is good.
        ask: Function that answers questions: `ask(question, incident)` returns the id of an option, or None if nobody
            answers. Default: none; the recovery is unattended, and a question ends it as `blocked`.
        listeners: Functions that are called with each event: `listener(event, incident)`. See `rung.print_events`.
            Default: none. Their errors are recorded and ignored.
        session: `rung.Session` that carries the model and the tries of session rungs from call to call. Default: none.
        rung_handlers: Functions that make a rung's new request, by action: `{"replan": plan, "compact": shrink}`, each called
            with the request and the incident. Default: Rung's own prompts.
        investigate: Function that finds the root cause before a new plan or a handover: `investigate(request, incident)`
            returns a text. Default: none.
        checkpoint: Object that saves and restores the state of the work (`take`, `restore`). Default: none.
        notes: Notes of the project: read before the run and for new plans, added to at its end. Default: none.
        key: Name of the circuit breaker, or a function of the request that returns it. Default: the module and name of the function.
        breakers: `rung.BreakerRegistry` with the circuit breakers. Default: the one of the process; None: no breaker.
        retry_budget: `rung.RetryBudget` that limits the retries of all calls together. Default: the one of the process;
            None: no limit.
        service_waits: Object that lets the calls that wait for a failing service share its probes. Default: each call sends
            its own.
        on_park: Function that is called with the incident when it is parked until a limit reopens. Default: none.
        incident_id: Id of the incident. Default: a new one.
        intervention: What a person asks of the first attempt, such as another model. The incident keeps the request as it was
            given. Default: nothing.
        clock: Source of time, such as `rung.testing.FakeClock()` in tests. Default: the system's clock.
        jitter: Function that returns a random number from 0 to 1, for tests. Default: `random.random`.

    Returns:
        The function with recovery, or a decorator that adds it.

    Raises:
        ConfigError: The target is neither a function nor a policy, the name of the ladder is unknown, or the policy lists
            models or agents and the function takes no `rung.Request` that could carry them.
        TypeError: An argument has the wrong type, or its name is unknown.

    Example:
        >>> import rung
        >>> answers = iter([ConnectionResetError("reset by peer"), "hello"])
        >>> @rung.guarded(rung.policy("call", backoff={"base": 0.01}))
        ... def fetch() -> str:
        ...     answer = next(answers)
        ...     if isinstance(answer, Exception):
        ...         raise answer
        ...     return answer
        >>> fetch()
        'hello'
    """
    if _is_function(target):
        return _wrap(target, None, ports, idempotent=idempotent)
    if target is _STORED_POLICY:
        return lambda function: _wrap(function, None, ports, idempotent=idempotent)
    policy = make_policy(target) if isinstance(target, str) else target
    if not isinstance(policy, Policy):
        raise ConfigError("guarded", target, _TARGET_TYPES)
    return lambda function: _wrap(function, policy, ports, idempotent=idempotent)


def use_default_journal(run: RecoveryRun) -> None:
    """Record the run of one call in the journal that the environment names, if it names one. Called before a failure."""
    if run.journal is None:
        journal = JournalPorts.of(default_journal())
        if journal.log is not None:
            run.use_journal(journal)


def _wrap(function: Any, policy: Policy | None, ports: Ports, *, idempotent: bool) -> Any:
    if isinstance(function, staticmethod | classmethod):
        return type(function)(_wrap(function.__func__, policy, ports, idempotent=idempotent))
    if not _is_function(function):
        raise ConfigError("guarded", function, _TARGET_TYPES)
    if policy is not None:
        check_models(function, policy)
    journal: object = ports.get("journal")
    if policy is None and isinstance(journal, StoredPolicies):
        followed = FollowedPolicy(
            function,
            lambda stored: GuardedFunction(function, stored, ports, idempotent=idempotent),
            journal,
            DEFAULT_LADDER,
        )
        return functools.update_wrapper(followed_policy.wrap(function, followed), function)
    guard = GuardedFunction(function, policy or make_policy(DEFAULT_LADDER), ports, idempotent=idempotent)
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
        if run.policy.budget.dollars is not None:
            from rung.engine.loop.recovery_log import warn_unheard_costs

            warn_unheard_costs(run)
        return run.value
    outcome = finish_run(run)
    if outcome.error is None:
        return outcome.unwrap()
    try:
        raise annotate(outcome.error, replace(outcome, error=None))
    finally:
        del outcome  # the error's traceback references this frame: a reference cycle


def _is_function(target: Any) -> bool:
    """Return whether the target can be guarded. From Python 3.14 on, `isroutine` also holds for partial objects."""
    return inspect.isroutine(target) and not isinstance(target, functools.partial)
