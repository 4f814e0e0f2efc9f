"""Is a worker alive? Three signals (its process, its beat, its progress) and what they say together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from rung.core.crew.contract import STALE, TaskState
from rung.core.domain.errors import ConfigError, is_number
from rung.core.policy.restart_intensity import RestartIntensity

if TYPE_CHECKING:
    from collections.abc import Sequence

RESTARTS: Final = RestartIntensity(restarts=5, seconds=900)
DEATHS: Final = RestartIntensity(restarts=3, seconds=30)  # that many at once have one cause, and it is not theirs
# Here it is somebody else's turn: no progress is expected of whoever waits for an answer.
PAUSED: Final = frozenset({TaskState.NEEDS_REVIEW, TaskState.ERROR})


class Liveness(StrEnum):
    """What a worker is."""

    WELL = "well"
    SLOW = "slow"  # alive, and getting on less than expected: look again later
    WAITING = "waiting"  # for a person
    LOOPING = "looping"  # busy, and going round in circles
    HUNG = "hung"  # its process lives, and it does not
    DEAD = "dead"


TROUBLE: Final = frozenset({Liveness.LOOPING, Liveness.HUNG, Liveness.DEAD})


@dataclass(frozen=True, slots=True, kw_only=True)
class LivenessSignals:
    """What is known of a worker; None is not known.

    `heartbeat_age` None is a worker that never beat, and as old as can be. `asked`: it has asked a person and
    waits. `looping`: a detector says so. `state` is its row's.
    """

    process_alive: bool | None = None
    heartbeat_age: float | None = None
    progress_age: float | None = None
    looping: bool = False
    asked: bool = False
    state: str = TaskState.WORKING


@dataclass(frozen=True, slots=True, kw_only=True)
class LivenessThresholds:
    """Seconds: without a beat until it is stale, without progress until it is slow, and until it is hung."""

    stale: float = STALE
    slow: float = STALE
    hung: float = 1800.0

    def __post_init__(self) -> None:
        for name in ("stale", "slow", "hung"):
            value = getattr(self, name)
            if value != math.inf and (not is_number(value) or value == 0):
                raise ConfigError(f"patience.{name}", value, "seconds, more than 0")
        if self.hung < self.slow:
            raise ConfigError("patience.hung", self.hung, f"no less than patience.slow, {self.slow:g}")


def look(signals: LivenessSignals, patience: LivenessThresholds) -> Liveness:
    """The verdict, worst first. Look again before acting on it: a beat may have come meanwhile.

    Without a beat a process that lives is hung; one that nobody can see counts as dead, as its lease is over.
    """
    if signals.process_alive is False:
        return Liveness.DEAD
    if signals.heartbeat_age is None or signals.heartbeat_age > patience.stale:
        return Liveness.HUNG if signals.process_alive else Liveness.DEAD
    if signals.asked:
        return Liveness.WAITING
    if signals.looping:
        return Liveness.LOOPING
    return _progress(signals, patience)


def _progress(signals: LivenessSignals, patience: LivenessThresholds) -> Liveness:
    age = signals.progress_age
    if age is None or signals.state in PAUSED or age <= patience.slow:
        return Liveness.WELL
    return Liveness.HUNG if age > patience.hung else Liveness.SLOW


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartLimits:
    """How often work is begun again: one task for life, all tasks together, and after deaths that come at once."""

    redispatches: int = 3
    restarts: RestartIntensity = RESTARTS
    deaths: RestartIntensity = DEATHS

    @property
    def longest(self) -> float:
        """Seconds back from which nothing matters any more."""
        return max(self.restarts.seconds, self.deaths.seconds)


LIMITS: Final = RestartLimits()


def stop_restarting(
    redispatches: int, restarts: Sequence[float], deaths: Sequence[float], now: float, limits: RestartLimits = LIMITS
) -> str:
    """Why a task must not be started once more, or nothing.

    `redispatches` of this task so far; when any task was restarted, and when any worker died.
    """
    if redispatches >= limits.redispatches:
        return f"it was dispatched again {redispatches} times, and {limits.redispatches} is the limit"
    if limits.deaths.remaining(deaths, now) == 0:
        return (
            f"{len(deaths)} workers died within {limits.deaths.seconds:g} s: that has one cause, and it is not the task"
        )
    if limits.restarts.remaining(restarts, now) == 0:
        return f"{limits.restarts.restarts} restarts within {limits.restarts.seconds / 60:g} minutes are the limit"
    return ""
