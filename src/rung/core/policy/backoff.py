"""How long to wait before repeating: exponential, capped, full jitter; the server's hint is obeyed."""

from __future__ import annotations

from dataclasses import dataclass

from rung.core.domain.errors import ConfigError, is_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """`base`, `base * multiplier`, … seconds, at most `cap`; the wait is a random part of that.

    Full jitter spreads a herd best; `jitter=False` waits exactly the ceiling (for people who must
    explain a delay). A server's hint is never undercut: jitter is added on top of it.
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

    def ceiling(self, repeat: int) -> float:
        """The longest wait before the n-th repeat (n from 1); any n is safe, none overflows."""
        if self.base == 0.0 or repeat <= 1:
            return min(self.cap, self.base)
        try:
            # A power of floats overflows at once, one of whole numbers would take its time.
            return min(self.cap, self.base * float(self.multiplier) ** (repeat - 1))
        except OverflowError:
            return self.cap

    def wait(self, repeat: int, jitter: float, hint: float | None = None) -> float:
        """Seconds to wait before the n-th repeat, given a random number in [0, 1)."""
        ceiling = self.ceiling(repeat)
        if hint is not None:
            return hint + jitter * min(ceiling, hint * 0.25) if self.jitter else hint
        return ceiling * jitter if self.jitter else ceiling
