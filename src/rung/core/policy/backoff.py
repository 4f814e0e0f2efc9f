"""Exponential backoff with full jitter and a cap; a server's retry-after hint is respected."""

from __future__ import annotations

from dataclasses import dataclass

from rung.core.domain.errors import ConfigError, is_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Waits before retries: uniformly random between 0 and a ceiling of `base`, `base * multiplier`, … up to `cap` seconds.

    Full jitter spreads simultaneous retries best. With `jitter=False` the wait is exactly the ceiling, so that delays
    are predictable. A server's hint is a lower bound: jitter is added on top of it.
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
        """Return the longest wait before the n-th retry (n from 1); no n overflows."""
        if self.base == 0.0 or retry <= 1:
            return min(self.cap, self.base)
        try:
            # A power of floats overflows immediately; one of integers would be computed in full.
            return min(self.cap, self.base * float(self.multiplier) ** (retry - 1))
        except OverflowError:
            return self.cap

    def wait(self, retry: int, jitter: float, hint: float | None = None) -> float:
        """Return the seconds to wait before the n-th retry, given a random number in [0, 1)."""
        ceiling = self.ceiling(retry)
        if hint is not None:
            return hint + jitter * min(ceiling, hint * 0.25) if self.jitter else hint
        return ceiling * jitter if self.jitter else ceiling
