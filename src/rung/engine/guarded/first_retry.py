"""First retry of a guarded call that nobody observes: made without an incident.

The classifier, the circuit breaker, the retry budget and `decide` (through its cache) are asked as in any recovery. Only
the events and the stack of the error wait: they are built, and the engine continues, if the retry fails too.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.classify.failure_cache import classify_cached
from rung.core.classify.untrusted_objects import attribute
from rung.core.domain import events as ev
from rung.core.domain.request import Request
from rung.core.policy.breaker import CallVerdict, CircuitState
from rung.core.recovery.circuit import breaker_verdict
from rung.core.recovery.first_retry import FirstRetryCache
from rung.core.recovery.limits import attempt_limit
from rung.engine.local_zone import local_zone
from rung.engine.loop.run import CURRENT, with_stack
from rung.engine.loop.run_to_end import attach_outcome
from rung.engine.ports.clock import EPOCH
from rung.engine.timeouts.attempt_reports import any_since

if TYPE_CHECKING:
    from types import ModuleType, TracebackType

    from rung.core.domain.failures import Failure
    from rung.engine.loop.run import RecoveryRun

_GOOD: Final = CallVerdict.GOOD
_CLOSED: Final = CircuitState.CLOSED


class FirstRetry(NamedTuple):
    """First failure of a call, and the retry after it."""

    failure: Failure
    began: float
    failed_at: float
    deadline: float | None
    decision: ev.Repeat
    error: Exception
    traceback: TracebackType | None  # of the error now: one that is raised again gets another


class FirstRetries:
    """First retries of one guarded function."""

    def __init__(self, run_class: type[RecoveryRun]) -> None:
        assert run_class.breaker is not None  # noqa: S101  # set by GuardedFunction
        self.run_class = run_class
        self.breaker = run_class.breaker
        self.retry_budget = run_class.retry_budget
        self.budget_seconds = run_class.policy.budget.seconds
        self.cache = FirstRetryCache(run_class.policy, run_class.terms)
        self.log: ModuleType | None = None  # loaded at the first failure

    def _load_log(self) -> ModuleType:
        from rung.engine.loop import recovery_log

        self.log = recovery_log
        return recovery_log

    def decide(self, args: tuple[Any, ...], error: Exception, began: float) -> FirstRetry | None:
        """Return the retry after a first failure, or None if the engine must handle the failure.

        A retry is recorded by the circuit breaker and charged to the retry budget.
        """
        run = self.run_class
        if CURRENT.get() is not None or any_since(began, is_async=run.is_async) or _is_request(args):
            return None
        now, budget = EPOCH + monotonic(), self.retry_budget
        failure = classify_cached(error, now, local_zone)
        if budget is not None and not budget.affords(now):
            return None
        deadline = None if self.budget_seconds is None else began + self.budget_seconds
        decision = self.cache.lookup(failure, deadline, now, run.jitter())
        if decision is None:
            return None
        self.breaker.record(None, began, now, breaker_verdict(failure))
        if budget is not None:
            budget.charge()
        log = self.log or self._load_log()
        log.log_first_retry(run.log_name, failure, decision, now, run.terms.rungs)
        return FirstRetry(failure, began, now, deadline, decision, error, attribute(error, "__traceback__"))

    def seconds(self, retry: FirstRetry, began: float) -> float | None:
        """Return the time limit of a retry; 0 if it cannot be made without the engine."""
        if self.breaker.circuit is not _CLOSED:
            return 0.0
        return attempt_limit(self.run_class.policy, retry.deadline, began)

    def record_success(self, retry: FirstRetry, began: float) -> None:
        """Record a successful retry."""
        now = EPOCH + monotonic()
        self.breaker.record(None, began, now, _GOOD)
        log = self.log or self._load_log()
        log.log_recovered(self.run_class.log_name, 2, now - retry.began)

    def open_run(self, retry: FirstRetry, began: float) -> RecoveryRun:
        """Return a run with the events of the first failure and of the decision, for an attempt that began then."""
        run = self.run_class()
        run.open(None, retry.began)
        seconds = retry.failed_at - retry.began
        failure = with_stack(retry.failure, retry.error, retry.traceback)
        run.append(ev.AttemptFailed(retry.failed_at, failure, seconds, 0.0, may_retry=True))
        run.append(ev.Decided(retry.failed_at, retry.decision))
        run.began = began
        return run

    def record_cancelled(self, retry: FirstRetry, began: float, error: BaseException) -> None:
        """Record a retry that was cancelled or interrupted. The error carries the outcome so far."""
        run = self.open_run(retry, began)
        run.record_cancelled()
        attach_outcome(error, run)


def _is_request(args: tuple[Any, ...]) -> bool:
    return bool(args) and isinstance(args[0], Request)
