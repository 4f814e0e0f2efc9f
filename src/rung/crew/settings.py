"""Settings of a conductor: concurrency, timeouts and restart limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rung.core.crew.blocker import MAX_CONSULTATIONS
from rung.core.crew.contract import CONDUCTOR_STALE_SECONDS, HEARTBEAT_SECONDS, STALE_SECONDS
from rung.core.crew.liveness import DEFAULT_LIMITS, EXIT_SECONDS, RestartLimits
from rung.core.crew.pool import DEFAULT_POOL_LIMITS, PoolLimits
from rung.core.policy.restart_intensity import RestartIntensity

if TYPE_CHECKING:
    from rung.core.crew.plan import CrewSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ConductorSettings:
    """Settings of a conductor. All durations are in seconds."""

    workers: int = 2  # that run at once
    command: tuple[str, ...] = ()  # worker command of a task that has none of its own
    poll: float = 5.0
    beat: float = HEARTBEAT_SECONDS
    stale: float = STALE_SECONDS  # without a heartbeat
    hung: float = 1_800.0  # without progress, despite heartbeats
    grace: float = 5.0  # between SIGTERM and SIGKILL
    exit_within: float = EXIT_SECONDS  # after it was asked to exit
    claim_within: float = 300.0  # after the launch
    limits: RestartLimits = DEFAULT_LIMITS
    max_consultations: int = MAX_CONSULTATIONS  # of the replanner
    pools: PoolLimits = DEFAULT_POOL_LIMITS
    attended: bool = False
    reviewed_by_person: bool = False
    conductor_stale: float = CONDUCTOR_STALE_SECONDS
    watchdog_stale: float = 180.0
    relaunches: int = 3  # of the conductor, without progress between them

    @classmethod
    def from_plan(cls, plan: CrewSettings) -> ConductorSettings:
        """Return the settings in the `[crew]` table of a plan."""
        return cls(
            workers=plan.workers,
            command=plan.worker,
            poll=plan.poll,
            beat=plan.beat,
            stale=plan.stale_after,
            hung=plan.hung,
            grace=plan.grace,
            exit_within=plan.exit_within,
            claim_within=plan.claim_within,
            limits=RestartLimits(
                redispatches=plan.redispatches,
                restarts=RestartIntensity(restarts=plan.restarts, seconds=plan.restart_seconds),
                deaths=RestartIntensity(restarts=plan.deaths, seconds=plan.death_seconds),
            ),
            pools=PoolLimits(
                patience=plan.patience,
                park=plan.park,
                probe_interval=plan.probe_interval,
                probe_seconds=plan.probe_seconds,
                spread=plan.spread,
            ),
            attended=plan.attended,
            reviewed_by_person=plan.review == "person",
            conductor_stale=plan.conductor_stale,
        )
