"""Settings of `learn`: when recorded outcomes may leave out rungs of the ladder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rung.core.domain.errors import ConfigError, is_number, is_whole

MAX_EXPLORE: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnSettings:
    """Whether a recovery follows what helped before, by the journal. `learn = true` is short for `enabled`.

    The first climb starts at the rung that fixed the same failure before. A rung is left out if it surely succeeds less often
    than the next one for this kind, project and model, with at least `min_attempts` tries of both in the last `window` seconds.
    `explore` is the share of incidents that take the ladder's own order, so that rungs left out are measured again.
    """

    enabled: bool = False
    min_attempts: int = 30
    explore: float = 0.1
    window: float = 2_592_000.0  # 30 days

    def __post_init__(self) -> None:
        if type(self.enabled) is not bool:
            raise ConfigError("learn.enabled", self.enabled, "true or false")
        if not is_whole(self.min_attempts, 5):
            raise ConfigError("learn.min_attempts", self.min_attempts, "a whole number, 5 or more")
        if not is_number(self.explore) or self.explore > MAX_EXPLORE:
            raise ConfigError("learn.explore", self.explore, f"a share, 0 to {MAX_EXPLORE:g}")
        if not is_number(self.window) or not self.window:
            raise ConfigError("learn.window", self.window, "seconds, more than 0")
