"""Configuration of each library.

Other libraries get the leanest settings that still retry: four attempts, no wait, no logging, no timeout where it is
optional. redress and pyresilience have a breaker, so they use retry and breaker. rung always has its ladder, breaker,
deadline and in-memory record.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

from bench.overhead.work import Call, Mode, Scenario, adecorated, aloop, decorated, loop

Decorator: TypeAlias = Callable[[Call], Call]

YARDSTICK = "bare loop"
MEMORY = "memory"  # used instead of a scenario


def bare_loop(mode: Mode, _scenario: Scenario) -> Decorator:
    """Return the baseline: a loop without a library."""
    return aloop if mode is Mode.ASYNC else loop


def bare_decorator(mode: Mode, _scenario: Scenario) -> Decorator:
    """Return a hand-written decorator."""
    return adecorated if mode is Mode.ASYNC else decorated


def with_rung(_mode: Mode, scenario: Scenario) -> Decorator:
    """Return `rung.guarded`; for failures with a breaker and a budget that do not trip, and without its log."""
    import logging

    import rung

    logging.getLogger("rung").setLevel(logging.CRITICAL)

    if scenario is Scenario.SUCCESS:
        return rung.guarded(rung.policy("call"))
    # With half of all attempts failing, the default breaker would open and the retry budget would be
    # exhausted after some twenty calls, and nothing would be left to measure.
    breakers = rung.BreakerRegistry(rung.BreakerSettings(rate=1.0, minimum=1000))
    policy = rung.policy("call", backoff={"base": 0})
    return rung.guarded(policy, retry_budget=None, breakers=breakers)


def with_tenacity(_mode: Mode, _scenario: Scenario) -> Decorator:
    """Retry."""
    import tenacity

    decorator: Decorator = tenacity.retry(stop=tenacity.stop_after_attempt(4), wait=tenacity.wait_none(), reraise=True)
    return decorator


def with_stamina(_mode: Mode, _scenario: Scenario) -> Decorator:
    """Retry; its logging of each retry is switched off."""
    import stamina
    from stamina.instrumentation import set_on_retry_hooks

    set_on_retry_hooks([])
    return stamina.retry(on=Exception, attempts=4, timeout=None, wait_initial=0, wait_max=0, wait_jitter=0)


def with_backoff(_mode: Mode, _scenario: Scenario) -> Decorator:
    """Retry; its logging of each retry is switched off."""
    import backoff

    return backoff.on_exception(backoff.constant, Exception, interval=0, jitter=None, max_tries=4, logger=None)


def with_redress(mode: Mode, _scenario: Scenario) -> Decorator:
    """Retry and breaker. It has no decorator for both: `policy.call(work)` is how it is used."""
    import redress

    def no_wait(_context: redress.BackoffContext) -> float:
        return 0.0

    breaker = redress.CircuitBreaker()  # counts whole calls, so that a retried one is a success
    settings: dict[str, Any] = {"classifier": redress.default_classifier, "strategy": no_wait, "max_attempts": 4}
    policy: redress.Policy | redress.AsyncPolicy
    if mode is Mode.ASYNC:
        policy = redress.AsyncPolicy(retry=redress.AsyncRetry(**settings), circuit_breaker=breaker)
    else:
        policy = redress.Policy(retry=redress.Retry(**settings), circuit_breaker=breaker)
    return functools.partial(functools.partial, policy.call)


def with_pyresilience(_mode: Mode, _scenario: Scenario) -> Decorator:
    """Retry and breaker; the breaker counts failures in a row, so that one at a time does not open it."""
    from pyresilience import CircuitBreakerConfig, RetryConfig, resilient

    retry = RetryConfig(max_attempts=4, delay=0, jitter=False)
    return resilient(retry=retry, circuit_breaker=CircuitBreakerConfig())


SETUPS: dict[str, Callable[[Mode, Scenario], Decorator]] = {
    YARDSTICK: bare_loop,
    "bare decorator": bare_decorator,
    "rung": with_rung,
    "tenacity": with_tenacity,
    "stamina": with_stamina,
    "backoff": with_backoff,
    "redress": with_redress,
    "pyresilience": with_pyresilience,
}
PEERS = ("tenacity", "stamina", "backoff", "redress", "pyresilience")
LABELS = {
    "rung": "rung: ladder, breaker, deadline, record",
    "tenacity": "tenacity: retry",
    "stamina": "stamina: retry",
    "backoff": "backoff: retry",
    "redress": "redress: retry, breaker, deadline",
    "pyresilience": "pyresilience: retry, breaker",
}
