"""First attempts made without an incident, and recoveries that begin with the failure of one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from rung.core.domain import events as ev
from rung.core.domain.request import Request
from rung.core.policy.breaker import BreakerSettings, CallVerdict, CircuitState
from rung.core.policy.budget import RetryBudget
from rung.core.policy.policy import Model
from rung.core.policy.templates import preset
from rung.engine.first_attempt import FirstAttempt, attempt_first
from rung.engine.loop.process_state import BreakerRegistry
from rung.engine.ports.clock import SYSTEM_CLOCK
from rung.engine.recover import recover
from rung.testing import FakeClock

if TYPE_CHECKING:
    from rung.core.domain.outcome import Outcome
    from rung.core.policy.breaker import Breaker

TOUCHY = BreakerSettings(rate=0.5, minimum=1, window=10.0, pause=60.0, probe=60.0)


def first(attempt: Any, breaker: Breaker, budget: RetryBudget | None = None) -> FirstAttempt | None:
    return asyncio.run(attempt_first(attempt, breaker, budget or RetryBudget(), SYSTEM_CLOCK))


async def good() -> str:
    return "value"


async def bad() -> str:
    raise ConnectionResetError("reset")


def test_a_success_is_counted_at_once() -> None:
    """A success gives its value, a vote to the breaker and the tokens of a call to the retry budget."""
    breaker, budget = BreakerRegistry().get("k"), RetryBudget()
    budget.charge()
    before = budget.tokens
    made = first(good, breaker, budget)
    assert made is not None
    assert (made.value, made.error) == ("value", None)
    assert budget.tokens == before + budget.per_call
    assert len(breaker.calls) == 1


def test_a_failure_is_left_to_recover() -> None:
    """A failure comes back as a value and is counted nowhere yet."""
    breaker = BreakerRegistry(TOUCHY).get("k")
    made = first(bad, breaker)
    assert made is not None
    assert isinstance(made.error, ConnectionResetError)
    assert breaker.circuit is CircuitState.CLOSED
    assert not breaker.calls


def test_no_attempt_while_the_circuit_is_open() -> None:
    """With an open circuit nothing is attempted."""
    breaker, now = BreakerRegistry(TOUCHY).get("k"), SYSTEM_CLOCK.now()
    breaker.record(None, now, now, CallVerdict.BAD)
    assert breaker.circuit is CircuitState.OPEN
    assert first(good, breaker) is None


def test_recovery_begins_with_the_failure_of_the_first_attempt() -> None:
    """The first attempt is recorded with its own beginning, counts against its breaker, and is repeated once."""
    breakers, clock, made = BreakerRegistry(), FakeClock(), []

    async def attempt(request: Request) -> str:
        made.append(request.model)
        return "value"

    failed = FirstAttempt(clock.now() - 5.0, clock.now(), error=ConnectionResetError("reset"))
    outcome: Outcome[str] = asyncio.run(
        recover(
            attempt,
            Request(model="small"),
            policy="call",
            first=failed,
            breakers=breakers,
            clock=clock,
            key=lambda request: f"up/{request.model if request else ''}",
        )
    )
    opened, lost = outcome.events[:2]
    assert (outcome.status, outcome.attempts, made) == (ev.Status.RECOVERED, 2, ["small"])
    assert isinstance(opened, ev.Opened)
    assert opened.at == failed.began
    assert isinstance(lost, ev.AttemptFailed)
    assert lost.seconds == 5.0
    assert [key for key, _ in breakers.items()] == ["up/small"]


def test_the_key_follows_the_request() -> None:
    """A key that is a function of the request gives each model its own breaker after a hand-over."""
    breakers, clock = BreakerRegistry(), FakeClock()
    policy = preset("call").replace(models=(Model(name="small"), Model(name="large")))

    async def attempt(request: Request) -> str:
        if request.model == "small":
            raise LookupError("404 model not found: small")
        return request.model

    outcome: Outcome[str] = asyncio.run(
        recover(
            attempt,
            Request(model="small"),
            policy=policy,
            breakers=breakers,
            clock=clock,
            key=lambda request: f"up/{request.model if request else ''}",
        )
    )
    assert outcome.value == "large"
    assert {key for key, _ in breakers.items()} == {"up/small", "up/large"}
