"""Budgets: the caps of one incident, and a retry budget that a whole process shares."""

from __future__ import annotations

from dataclasses import dataclass

from rung.core.domain.errors import ConfigError, is_number, is_whole
from rung.core.domain.failures import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Caps of one incident; None: no cap."""

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
    """Token bucket that limits the retries of a process during an outage.

    A scheduled retry takes tokens (fewer after a rate limit, where the server asked for the retry); a success without
    a retry returns one. While the bucket is empty nothing is retried and the ladder climbs instead, so that retries do
    not make an outage worse. Tokens are taken when a retry is scheduled, not when it runs, so that waiting retries are
    already counted. `price` sets the tokens of every retry: with 2, a service that fails every third call can be
    retried indefinitely.
    """

    __slots__ = ("capacity", "is_below_capacity", "price", "tokens")

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
        self.is_below_capacity = False  # a success with a full bucket costs one test

    def cost(self, kind: Kind) -> int:
        """Return the tokens that one retry after this kind of failure takes."""
        if self.price is not None:
            return self.price
        return self.THROTTLED_COST if kind is Kind.RATE_LIMIT else self.COST

    def affords(self, kind: Kind) -> bool:
        """Whether there are tokens for one more retry."""
        return self.tokens >= self.cost(kind)

    def charge(self, kind: Kind) -> None:
        """Take the tokens of a scheduled retry."""
        self.tokens = max(0, self.tokens - self.cost(kind))
        self.is_below_capacity = True

    def credit(self, tokens: int = 1) -> None:
        """Return tokens after a success, or after a retry that was not made."""
        self.tokens = min(self.capacity, self.tokens + tokens)
        self.is_below_capacity = self.tokens < self.capacity
