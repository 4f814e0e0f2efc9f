"""Restart rules of a fan-out: what happens to the siblings of a failed job, and how often jobs are restarted."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rung.core.domain.errors import ConfigError, is_whole

if TYPE_CHECKING:
    from collections.abc import Sequence


class SiblingRestarts(StrEnum):
    """Handling of the other jobs when one fails."""

    CONTINUE = "continue"
    CANCEL = "cancel"
    RETRY_FAILED_ONLY = "retry_failed_only"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartIntensity:
    """How many jobs `rung.gather` may restart.

    Attributes:
        restarts: Most restarts within any period of `seconds`. Default: 3.
        seconds: Length of the period. Default: 60.

    Raises:
        ConfigError: A value is not allowed.
    """

    restarts: int = 3
    seconds: float = 60.0

    def __post_init__(self) -> None:
        if not is_whole(self.restarts):
            raise ConfigError("intensity.restarts", self.restarts, "a whole number, 0 or more")
        if not self.seconds > 0:
            raise ConfigError("intensity.seconds", self.seconds, "seconds, more than 0")

    def remaining(self, restarts: Sequence[float], now: float) -> int:
        """Return how many more jobs may be restarted now, given the times of earlier restarts.

        Args:
            restarts: Times of earlier restarts, in seconds.
            now: The time, in seconds.
        """
        recent = sum(1 for at in restarts if now - at < self.seconds)
        return max(0, self.restarts - recent)
