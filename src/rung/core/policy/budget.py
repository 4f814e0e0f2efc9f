"""Budgets: the caps of one incident, and a retry budget that a whole process shares."""

from __future__ import annotations

from dataclasses import dataclass

from rung.core.domain.errors import ConfigError, is_number, is_whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Caps of one recovery.

    Attributes:
        attempts: Most attempts; None: no cap. Probes of a failing service are not counted: `patience` bounds them. Default: 20.
        seconds: Most seconds; None: no cap. Default: 3600.
        dollars: Most US dollars, as far as attempts report them; None: no cap. Default: None.

    Raises:
        ConfigError: A value is not allowed.
    """

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
    """Token bucket that limits the retries of a process, so that they do not make an outage worse.

    By default retries are at most 40 % of the calls, which rides out a service that fails 30 % of them. Without tokens
    nothing is retried and the ladder climbs instead. Tokens are taken when a retry is scheduled, not when it runs, so that
    waiting retries are already counted.

    Args:
        capacity: Most tokens. Default: 500.
        price: Tokens that a retry takes. Default: 5.
        per_call: Tokens that each call brings when it begins. Default: 2.
        initial: Tokens at the start, a reserve that refills with time. Default: 75.
        per_second: Tokens per second below the reserve, so that a process with few calls is hardly ever limited. Default: 5.

    Raises:
        ConfigError: A value is not allowed.
    """

    __slots__ = (
        "_refilled_at",
        "capacity",
        "initial",
        "is_below_capacity",
        "per_call",
        "per_second",
        "price",
        "tokens",
    )

    COST = 5

    def __init__(
        self, capacity: int = 500, price: int = COST, *, per_call: int = 2, initial: int = 75, per_second: float = 5.0
    ) -> None:
        for key, value in (("capacity", capacity), ("price", price), ("per_call", per_call), ("initial", initial)):
            if not is_whole(value, 1):
                raise ConfigError(f"retry_budget.{key}", value, "a whole number, 1 or more")
        if not is_number(per_second):
            raise ConfigError("retry_budget.per_second", per_second, "a finite number, 0 or more")
        self.price, self.per_call, self.per_second = price, per_call, per_second
        self.capacity = capacity
        self.initial = min(capacity, initial)
        self.tokens: float = self.initial
        self.is_below_capacity = self.tokens < capacity  # a call with a full bucket costs one test
        self._refilled_at: float | None = None

    def affords(self, now: float | None = None) -> bool:
        """Return whether there are tokens for one more retry.

        Args:
            now: UTC seconds, by which the reserve is refilled first. Default: it is not refilled.
        """
        if now is not None:
            since, self._refilled_at = self._refilled_at, now
            if since is not None and self.tokens < self.initial:
                self.tokens = min(self.initial, self.tokens + max(0.0, now - since) * self.per_second)
        return self.tokens >= self.price

    def charge(self) -> None:
        """Take the tokens of a scheduled retry."""
        self.tokens = max(0, self.tokens - self.price)
        self.is_below_capacity = True

    def credit(self, tokens: float | None = None) -> None:
        """Add the tokens of a call that begins, or return those of a retry that was not made.

        Args:
            tokens: Number of tokens. Default: those of one call.
        """
        self.tokens = min(self.capacity, self.tokens + (self.per_call if tokens is None else tokens))
        self.is_below_capacity = self.tokens < self.capacity
