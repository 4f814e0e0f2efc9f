"""Concurrent calls to a service that fails some of them: the shared limits explain themselves and can be switched off."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from bench.concurrency.__main__ import MAX_LOAD, measure

import rung

FAST: Any = {"backoff": {"base": 0}}


async def _fails() -> None:
    raise ConnectionResetError("reset")


def test_ordinary_partial_failure_is_ridden_out() -> None:
    """Of 200 concurrent calls of which 30 % fail, no more are lost than with tenacity."""
    ours, theirs = (asyncio.run(measure(name, 0.3, 1)) for name in ("rung", "tenacity"))
    assert ours.lost <= theirs.lost
    assert ours.load <= MAX_LOAD


def test_a_herd_is_bounded() -> None:
    """Where 40 % fail, the retries stop before the load is 1.5 times that of the calls."""
    assert asyncio.run(measure("rung", 0.4, 1)).load <= MAX_LOAD


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
    policy = rung.policy("call", retries=0)
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
