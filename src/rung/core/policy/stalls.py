"""Stalls: when an attempt is overdue, by the durations of earlier attempts of its kind. The only place of this rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rung.core.domain.errors import ConfigError, is_number, is_whole

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_SIMILAR: Final = 50  # latest successful attempts of the same kind that are compared


@dataclass(frozen=True, slots=True, kw_only=True)
class StallLimits:
    """When an attempt without a sign of progress is ended as `stalled`, so that the ladder goes on.

    It must have been without one for `factor` times the slowest of the latest successful attempts of its kind, and for
    `min_seconds`. With fewer than `samples` of them nothing is ended: little evidence must not stop healthy work.
    """

    enabled: bool = True
    factor: float = 4.0
    samples: int = 10
    min_seconds: float = 600.0

    def __post_init__(self) -> None:
        if type(self.enabled) is not bool:
            raise ConfigError("stalls.enabled", self.enabled, "true or false")
        if not is_number(self.factor, 1.0):
            raise ConfigError("stalls.factor", self.factor, "a finite number, 1 or more")
        if not is_whole(self.samples, 1):
            raise ConfigError("stalls.samples", self.samples, "a whole number, 1 or more")
        if not is_number(self.min_seconds) or not self.min_seconds:
            raise ConfigError("stalls.min_seconds", self.min_seconds, "seconds, more than 0")

    def limit(self, durations: Iterable[float]) -> float | None:
        """Return the seconds without a sign of progress after which an attempt is stalled; None: never."""
        if not self.enabled:
            return None
        limit = overdue_after(durations, factor=self.factor, samples=self.samples)
        return None if limit is None else max(self.min_seconds, limit)


def overdue_after(durations: Iterable[float], *, factor: float, samples: int, share: float = 1.0) -> float | None:
    """Return the seconds after which a task is overdue: `factor` times what this share of earlier ones took at most.

    None if fewer than `samples` durations are known.
    """
    ordered = sorted(durations)
    if len(ordered) < samples:
        return None
    return factor * ordered[min(len(ordered) - 1, int(share * len(ordered)))]
