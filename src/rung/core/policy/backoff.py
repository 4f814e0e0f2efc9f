"""Exponential backoff with full jitter and a cap; a server's retry-after hint is respected."""

from __future__ import annotations

from dataclasses import dataclass

from rung.core.domain.errors import ConfigError, is_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Waits before retries: uniformly random between 0 and a ceiling of `base`, `base * multiplier`, … up to `cap` seconds.

    A server's hint is a lower bound: jitter is added on top of it.

    Attributes:
        base: Ceiling of the first wait, in seconds. Default: 1.
        multiplier: Factor from wait to wait, 1 or more. Default: 2.
        cap: Highest ceiling, in seconds. Default: 30.
        jitter: Whether waits are random, which spreads simultaneous retries. Default: True; otherwise a wait is its ceiling.

    Raises:
        ConfigError: A value is not allowed.
    """

    base: float = 1.0
    multiplier: float = 2.0
    cap: float = 30.0
    jitter: bool = True

    def __post_init__(self) -> None:
        for key, low in (("base", 0.0), ("multiplier", 1.0), ("cap", 0.0)):
            if not is_number(getattr(self, key), low):
                raise ConfigError(f"backoff.{key}", getattr(self, key), f"a finite number, {low:g} or more")
        if type(self.jitter) is not bool:
            raise ConfigError("backoff.jitter", self.jitter, "true or false")

    def ceiling(self, retry: int) -> float:
        """Return the longest wait before a retry, in seconds.

        Args:
            retry: Number of the retry, from 1. No number overflows.
        """
        if self.base == 0.0 or retry <= 1:
            return min(self.cap, self.base)
        try:
            # A power of floats overflows immediately; one of integers would be computed in full.
            return min(self.cap, self.base * float(self.multiplier) ** (retry - 1))
        except OverflowError:
            return self.cap

    def wait(self, retry: int, jitter: float, hint: float | None = None) -> float:
        """Return the seconds to wait before a retry.

        Args:
            retry: Number of the retry, from 1.
            jitter: Random number from 0 to 1.
            hint: Seconds that the server asks for. Default: none.
        """
        ceiling = self.ceiling(retry)
        if hint is not None:
            return hint + jitter * min(ceiling, hint * 0.25) if self.jitter else hint
        return ceiling * jitter if self.jitter else ceiling
