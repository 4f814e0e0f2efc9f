"""State shared by all recoveries of a process: the retry budget, and one circuit breaker for each key."""

from __future__ import annotations

from functools import partial
from typing import Final

from rung.core.policy.breaker import Breaker, BreakerSettings
from rung.core.policy.budget import RetryBudget


class BreakerRegistry:
    """Circuit breakers by key, created on first use.

    Args:
        settings: Settings of each breaker. Default: `rung.BreakerSettings()`.
        max_keys: Number of breakers above which the oldest one is forgotten. Default: None, never.

    Example:
        >>> import rung
        >>> breakers = rung.BreakerRegistry(rung.BreakerSettings(minimum=10, pause=5))
        >>> rung.recover_sync(lambda request: "done", "go", breakers=breakers, key="search").ok
        True
    """

    def __init__(self, settings: BreakerSettings | None = None, max_keys: int | None = None) -> None:
        self.settings = settings or BreakerSettings()
        self._max_keys = max_keys
        self._by_key: dict[str, Breaker] = {}

    def get(self, key: str) -> Breaker:
        """Return the breaker for this key, a new one if there is none.

        Args:
            key: Name of the service, model or function.
        """
        breaker = self._by_key.get(key)
        if breaker is not None:
            return breaker
        if self._max_keys is not None and len(self._by_key) >= self._max_keys:
            self._by_key.pop(next(iter(self._by_key)), None)
        breaker = self._by_key.setdefault(key, Breaker(self.settings))
        breaker.counters["attempts"] = partial(_attempts_with, breaker)
        return breaker

    def items(self) -> list[tuple[str, Breaker]]:
        """Return all keys and their breakers."""
        return list(self._by_key.items())

    def clear(self) -> None:
        """Forget all breakers. A function that is guarded already keeps its own."""
        self._by_key.clear()


# Attempts that the drivers are making now: the breaker of each.
ATTEMPTS_IN_FLIGHT: Final[dict[object, Breaker | None]] = {}


def _attempts_with(breaker: Breaker) -> int:
    return sum(other is breaker for other in ATTEMPTS_IN_FLIGHT.copy().values())


RETRY_BUDGET: Final = RetryBudget()
BREAKERS: Final = BreakerRegistry()
