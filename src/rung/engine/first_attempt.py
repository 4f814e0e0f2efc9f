"""First attempt of a call, made without an incident: most calls succeed at once and need no recovery."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.policy.breaker import CallVerdict, CircuitState

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rung.core.policy.breaker import Breaker
    from rung.core.policy.budget import RetryBudget
    from rung.engine.ports.clock import Clock

_CLOSED: Final = CircuitState.CLOSED
_GOOD: Final = CallVerdict.GOOD


class FirstAttempt(NamedTuple):
    """Result of a first attempt: a value, or the error to give to `recover(first=...)`."""

    began: float
    ended: float
    value: Any = None
    error: Exception | None = None
    dollars: float = 0.0  # cost of a failed attempt


async def attempt_first(
    attempt: Callable[[], Awaitable[Any]], breaker: Breaker, retry_budget: RetryBudget, clock: Clock
) -> FirstAttempt | None:
    """Make the first attempt of a call. Return None, without an attempt, if the circuit is not closed.

    The call counts for the retry budget here, and a success for the breaker, since no recovery follows. A failure does not:
    `recover(first=...)` records it, counts it and decides about it.
    """
    if breaker.circuit is not _CLOSED:
        return None
    if retry_budget.is_below_capacity:
        retry_budget.credit()
    began = clock.now()
    try:
        value = await attempt()
    except Exception as error:  # `recover` decides about it
        return FirstAttempt(began, clock.now(), None, error)
    ended = clock.now()
    breaker.record(None, began, ended, _GOOD)
    return FirstAttempt(began, ended, value)
