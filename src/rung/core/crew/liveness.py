"""Liveness of a worker, from three signals: its process, its heartbeat and its progress; and limits on restarts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from rung.core.crew.contract import STALE_SECONDS, TaskState
from rung.core.domain.errors import ConfigError, is_number
from rung.core.policy.restart_intensity import RestartIntensity

if TYPE_CHECKING:
    from collections.abc import Sequence

RESTART_INTENSITY: Final = RestartIntensity(restarts=5, seconds=900)
EXIT_SECONDS: Final = 120.0  # for a worker that was asked to exit
DEATH_INTENSITY: Final = RestartIntensity(restarts=3, seconds=30)  # so many deaths at once have a common cause
# In these states the worker waits for an answer, so no progress is expected.
WAITING_STATES: Final = frozenset({TaskState.NEEDS_REVIEW, TaskState.ERROR})


class Liveness(StrEnum):
    """The condition of a worker."""

    WELL = "well"
    SLOW = "slow"  # alive, with less progress than expected
    WAITING = "waiting"  # for a person
    LOOPING = "looping"  # busy, but it repeats itself
    HUNG = "hung"  # the process is alive, without heartbeats or progress
    OVERDUE = "overdue"  # it was asked to exit, and is still there
    DEAD = "dead"


UNHEALTHY: Final = frozenset({Liveness.LOOPING, Liveness.HUNG, Liveness.OVERDUE, Liveness.DEAD})


@dataclass(frozen=True, slots=True, kw_only=True)
class LivenessSignals:
    """The signals of a worker; None means unknown. Ages are in seconds.

    A worker without any heartbeat (`heartbeat_age` None) counts as stale. `is_looping` is the loop detectors'
    verdict; `state` is that of the task, and `state_age` the seconds since it changed.
    """

    process_alive: bool | None = None
    heartbeat_age: float | None = None
    progress_age: float | None = None
    state_age: float | None = None
    is_looping: bool = False
    waits_for_person: bool = False
    state: str = TaskState.WORKING


@dataclass(frozen=True, slots=True, kw_only=True)
class LivenessThresholds:
    """Seconds without a heartbeat until a worker is stale; without progress until it is slow, and until it is hung.

    A worker that was asked to exit has `exit_within` seconds, however busy it is.
    """

    stale: float = STALE_SECONDS
    slow: float = STALE_SECONDS
    hung: float = 1800.0
    exit_within: float = EXIT_SECONDS

    def __post_init__(self) -> None:
        for name in ("stale", "slow", "hung", "exit_within"):
            value = getattr(self, name)
            if value != math.inf and (not is_number(value) or value == 0):
                raise ConfigError(f"thresholds.{name}", value, "seconds, more than 0")
        if self.hung < self.slow:
            raise ConfigError("thresholds.hung", self.hung, f"no less than thresholds.slow, {self.slow:g}")


@dataclass(frozen=True, slots=True)
class TableView:
    """When an observer last read the table, and for how many seconds it has watched it without a gap.

    A worker is silent only while somebody watches it. Nobody can write a heartbeat while the table is locked or away, or the
    machine is suspended; on a busy machine heartbeats are as late as the observer's own reads; and a new observer knows
    nothing about the time before its first read. None of this is a silence of a worker.
    """

    at: float | None = None
    watched: float = 0.0

    def read(self, now: float, stale: float, poll: float) -> TableView:
        """Return the view after a read; `stale` is the shortest threshold of a worker, `poll` the seconds between two reads.

        A read that is late counts for an eighth of `stale` at most. One that is late by half of `stale` begins anew.
        """
        passed = math.inf if self.at is None else max(0.0, now - self.at)
        if passed - poll > stale / 2:
            return TableView(now)
        return TableView(now, self.watched + min(passed, max(2 * poll, stale / 8)))

    def missed(self) -> TableView:
        """Return the view after a read that failed: the next one begins to count anew."""
        return TableView()

    def silence(self, age: float | None) -> float | None:
        """Return the part of a heartbeat's age during which this observer watched the table."""
        return None if age is None else min(age, self.watched)


def check_liveness(signals: LivenessSignals, thresholds: LivenessThresholds) -> Liveness:
    """Return the condition of a worker. Check again before acting on it: a heartbeat may have arrived meanwhile.

    Without a heartbeat, a process that is alive is hung. A process that cannot be seen counts as dead, because its
    lease has expired.
    """
    if signals.process_alive is False:
        return Liveness.DEAD
    if signals.heartbeat_age is None or signals.heartbeat_age > thresholds.stale:
        return Liveness.HUNG if signals.process_alive else Liveness.DEAD
    if signals.state == TaskState.EXIT_REQUESTED and (signals.state_age or 0.0) > thresholds.exit_within:
        return Liveness.OVERDUE
    if signals.waits_for_person:
        return Liveness.WAITING
    if signals.is_looping:
        return Liveness.LOOPING
    return _check_progress(signals, thresholds)


def _check_progress(signals: LivenessSignals, thresholds: LivenessThresholds) -> Liveness:
    age = signals.progress_age
    if age is None or signals.state in WAITING_STATES or age <= thresholds.slow:
        return Liveness.WELL
    return Liveness.HUNG if age > thresholds.hung else Liveness.SLOW


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartLimits:
    """Limits on restarts: of one task in its lifetime, of all tasks together, and after several deaths at once."""

    redispatches: int = 3
    restarts: RestartIntensity = RESTART_INTENSITY
    deaths: RestartIntensity = DEATH_INTENSITY

    @property
    def window_seconds(self) -> float:
        """Return the age after which a restart no longer counts."""
        return max(self.restarts.seconds, self.deaths.seconds)


DEFAULT_LIMITS: Final = RestartLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRestart:
    """An earlier restart: of which task, when, and whether its worker had died."""

    task_id: str
    at: float
    is_death: bool = False


def restart_block_reason(
    redispatches: int, restarts: Sequence[WorkerRestart], now: float, limits: RestartLimits = DEFAULT_LIMITS
) -> str:
    """Return why a task must not be restarted; empty if it may be.

    `redispatches` counts those of this task; `restarts` are those of all workers, oldest first. Several tasks together reach
    a limit of the crew: one task counts once as dead, and for at most half of the restarts. One whose worker dies again and
    again says nothing about the others.
    """
    if redispatches >= limits.redispatches:
        return f"the task was redispatched {redispatches} times; the limit is {limits.redispatches}"
    deaths = _latest([restart for restart in restarts if restart.is_death], 1)
    if limits.deaths.remaining(deaths, now) == 0:
        return (
            f"the workers of {len(deaths)} tasks died within {limits.deaths.seconds:g} s, which suggests a common cause outside"
            " the tasks"
        )
    if limits.restarts.remaining(_latest(restarts, max(1, limits.restarts.restarts // 2)), now) == 0:
        window = f"{limits.restarts.seconds / 60:g} minutes"
        return f"the limit of {limits.restarts.restarts} restarts within {window} is reached"
    return ""


def _latest(restarts: Sequence[WorkerRestart], number: int) -> list[float]:
    """Return the times of the latest restarts of each task, up to this number each."""
    by_task: dict[str, list[float]] = {}
    for restart in restarts:
        by_task.setdefault(restart.task_id, []).append(restart.at)
    return [at for times in by_task.values() for at in times[-number:]]
