"""Concurrent calls to a service that fails some of them: the shared limits explain themselves and can be switched off."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from bench.concurrency.__main__ import MAX_LOAD, NO_WAITING, measure

import rung
from rung.core.domain import events as ev
from rung.core.policy.bounds import bounded
from rung.engine.external_loop import ExternalRecovery, ExternalRetryBudget

FAST: Any = {"backoff": {"base": 0}, "patience": 0}


async def _fails() -> None:
    raise ConnectionResetError("reset")


def test_ordinary_partial_failure_is_ridden_out() -> None:
    """Of 200 concurrent calls of which 30 % fail, no more are lost than with tenacity, also without waiting."""
    ours, theirs = (asyncio.run(measure(name, 0.3, 1)) for name in (NO_WAITING, "tenacity"))
    assert ours.lost <= theirs.lost
    assert ours.load <= MAX_LOAD


def test_a_herd_is_bounded() -> None:
    """Where 40 % fail, the retries stop before the load is 1.5 times that of the calls."""
    assert asyncio.run(measure(NO_WAITING, 0.4, 1)).load <= MAX_LOAD


def test_the_retry_budget_says_that_it_acts_and_can_be_switched_off() -> None:
    """A call that the budget keeps from being retried says so in its notes; without a budget it is retried."""
    budget = rung.RetryBudget(1, price=2)
    call = rung.guarded(rung.policy("call", **FAST), breakers=None, retry_budget=budget)(_fails)
    with pytest.raises(ConnectionResetError) as caught:
        asyncio.run(call())
    assert "the shared retry budget is spent" in "\n".join(caught.value.__notes__)
    free = rung.guarded(rung.policy("call", **FAST), breakers=None, retry_budget=None)(_fails)
    with pytest.raises(ConnectionResetError) as caught:
        asyncio.run(free())
    assert caught.value.__dict__["__rung_outcome__"].attempts == 4


def test_the_breaker_says_that_it_acts_and_can_be_switched_off() -> None:
    """An open circuit says why it rejects a call; with `breakers=None` no circuit opens, guarded or not."""
    touchy = rung.BreakerRegistry(rung.BreakerSettings(minimum=1))
    policy = rung.policy("call", retries=0, patience=0)
    call = rung.guarded(policy, breakers=touchy, retry_budget=None)(_fails)
    with pytest.raises(ConnectionResetError):
        asyncio.run(call())
    with pytest.raises(rung.errors.CircuitOpenError, match="too many of its calls failed"):
        asyncio.run(call())
    free = rung.guarded(policy, breakers=None, retry_budget=None)(_fails)

    async def attempt(_: rung.Request) -> Any:
        return await _fails()

    for _ in range(120):
        with pytest.raises(ConnectionResetError):
            asyncio.run(free())
    request = rung.Request(prompt="x", model="small")
    outcome: Any = asyncio.run(rung.recover(attempt, request, policy=policy, breakers=None, retry_budget=None))
    assert isinstance(outcome.error, ConnectionResetError)


def test_a_policy_switches_both_off() -> None:
    """`retry_budget = false` and `breaker = false` of a policy file do what the arguments do, over arguments as well."""
    budget, touchy = rung.RetryBudget(1, price=2), rung.BreakerRegistry(rung.BreakerSettings(minimum=1))
    policy = rung.policy("call", retry_budget=False, breaker=False, **FAST)
    call = rung.guarded(policy, breakers=touchy, retry_budget=budget, key="x")(_fails)
    for _ in range(2):
        with pytest.raises(ConnectionResetError) as caught:
            asyncio.run(call())
        assert caught.value.__dict__["__rung_outcome__"].attempts == 4
    loop = ExternalRecovery(policy, retry_budget=ExternalRetryBudget(budget))
    loop.failed(ConnectionResetError("reset"))
    assert isinstance(loop.incident.decision, ev.Repeat)
    bounds = bounded(policy, rung.policy("call"))
    assert bounds.retry_budget
    assert bounds.breaker


def test_attempts_in_flight_are_counted() -> None:
    """The breaker counts the running attempts of guarded calls and of recoveries that use it."""
    breakers = rung.BreakerRegistry()
    breaker = breakers.get("x")
    counts: list[int] = []

    async def main() -> None:
        go, started = asyncio.Event(), asyncio.Semaphore(0)

        async def waits(*_: Any) -> Any:
            started.release()
            await go.wait()

        call = rung.guarded("call", breakers=breakers, key="x")(waits)
        recovery: Any = rung.recover(waits, rung.Request(prompt="x"), breakers=breakers, key="x")
        running: list[Any] = [asyncio.ensure_future(call()), asyncio.ensure_future(recovery)]
        for _ in running:
            await started.acquire()
        counts.append(sum(counter() for counter in breaker.counters.values()))
        go.set()
        await asyncio.gather(*running)
        counts.append(sum(counter() for counter in breaker.counters.values()))

    asyncio.run(main())
    assert counts == [2, 0]
