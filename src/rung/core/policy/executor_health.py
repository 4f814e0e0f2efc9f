"""Health of an executor of a fleet, from the age of its heartbeat and its lease.

A stopped or partitioned process looks like a dead one: nothing in its row tells them apart. So `dead` only permits
others to take its runs; the epoch of each run (the fencing token) rejects what a woken process still tries to write.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Final

from rung.core.domain.errors import ConfigError, is_number

LEASE_SECONDS: Final = 30.0
BEATS_PER_LEASE: Final = 3  # two beats may be lost before the lease ends
MAX_TAKEOVERS: Final = 3  # of a run without a new step between them: it probably kills its executors


class ExecutorHealth(StrEnum):
    """Health of an executor."""

    LIVE = "live"
    LATE = "late"  # more than one beat is missing; its lease still holds
    DEAD = "dead"  # its lease has expired: others may take its runs


def beat_interval(lease: float) -> float:
    """Return the seconds between two heartbeats for a lease of so many seconds."""
    return check_lease(lease) / BEATS_PER_LEASE


def check_lease(lease: float) -> float:
    """Return the lease; raise ConfigError when it is not a finite number of seconds above zero."""
    if not is_number(lease) or not 0 < lease < math.inf:
        raise ConfigError("lease", lease, "seconds, more than 0")
    return lease


def executor_health(heartbeat: float, lease: float, now: float, observed_since: float = -math.inf) -> ExecutorHealth:
    """Return the health of an executor whose last heartbeat was at `heartbeat`, on the clock that `now` is read from.

    `observed_since`: since when the observer reads the database without a gap. While the database is away nobody can
    write a heartbeat, so that time is no silence of the executor.
    """
    silence = now - max(heartbeat, observed_since)  # negative after the clock was set back: then it counts as live
    if silence > lease:
        return ExecutorHealth.DEAD
    return ExecutorHealth.LATE if silence > lease * 2 / BEATS_PER_LEASE else ExecutorHealth.LIVE
