"""Limits: per rung and per incident (Budget), and a retry budget shared by a whole process."""

from __future__ import annotations

from dataclasses import dataclass

from rung.core.domain.errors import ConfigError, is_number, is_whole
from rung.core.domain.failures import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The hard cap of one incident. None means no cap of that sort."""

    attempts: int | None = 20
    seconds: float | None = 3600.0
    dollars: float | None = None

    def __post_init__(self) -> None:
        if self.attempts is not None and not is_whole(self.attempts, 1):
            raise ConfigError("budget.attempts", self.attempts, "a whole number, 1 or more")
        for key in ("seconds", "dollars"):
            value = getattr(self, key)
            if value is not None and not is_number(value):
                raise ConfigError(f"budget.{key}", value, "a finite number, 0 or more")


class RetryBudget:
    """Retries a process may schedule while little succeeds: a bucket of tokens, charged up front.

    Each scheduled retry takes tokens (a throttled one fewer: it was told to come back), each clean
    success gives one back. When the bucket is empty nobody retries and the ladder climbs instead,
    so that an outage is not made worse by everybody's retries. Charged when a retry is scheduled,
    not when it runs: a herd asleep has already been counted. With a `price` every retry takes so many:
    two let through what a service that fails every third call needs, for as long as that lasts.
    """

    __slots__ = ("capacity", "low", "price", "tokens")

    COST = 14
    THROTTLED_COST = 5

    def __init__(self, capacity: int = 500, price: int | None = None) -> None:
        if not is_whole(capacity, 1):
            raise ConfigError("retry_budget.capacity", capacity, "a whole number, 1 or more")
        if price is not None and not is_whole(price, 1):
            raise ConfigError("retry_budget.price", price, "a whole number, 1 or more")
        self.price = price
        self.capacity = capacity
        self.tokens = capacity
        self.low = False  # so that a success, with nothing to give back, costs one look

    def cost(self, kind: Kind) -> int:
        """Tokens one retry of a failure of this kind takes."""
        if self.price is not None:
            return self.price
        return self.THROTTLED_COST if kind is Kind.RATE_LIMIT else self.COST

    def affords(self, kind: Kind) -> bool:
        """Is there room for one more retry?"""
        return self.tokens >= self.cost(kind)

    def charge(self, kind: Kind) -> None:
        """A retry has been scheduled."""
        self.tokens = max(0, self.tokens - self.cost(kind))
        self.low = True

    def credit(self, tokens: int = 1) -> None:
        """An attempt succeeded, or a charge is returned."""
        self.tokens = min(self.capacity, self.tokens + tokens)
        self.low = self.tokens < self.capacity
