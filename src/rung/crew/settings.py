"""How a crew is run: how many at once, how patient, how often anything is tried again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rung.core.crew.blocker import CONSULTATIONS
from rung.core.crew.contract import BEAT, CONDUCTOR_STALE, STALE
from rung.core.crew.liveness import LIMITS, RestartLimits
from rung.core.policy.restart_intensity import RestartIntensity

if TYPE_CHECKING:
    from rung.core.crew.plan import CrewSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ConductorSettings:
    """Seconds, and counts."""

    workers: int = 2  # at once
    command: tuple[str, ...] = ()  # what a task is worked with when it names nothing of its own
    poll: float = 5.0
    beat: float = BEAT
    stale: float = STALE  # no heartbeat for so long
    hung: float = 1_800.0  # no progress for so long, although it beats
    grace: float = 5.0  # between asking a worker to end and ending it
    claim_within: float = 300.0  # of being launched
    limits: RestartLimits = LIMITS  # of beginning again
    consultations: int = CONSULTATIONS  # of the replanner
    attended: bool = False
    reviewed_by_person: bool = False
    conductor_stale: float = CONDUCTOR_STALE
    watchdog_stale: float = 180.0
    relaunches: int = 3  # of the conductor, without progress

    @classmethod
    def of(cls, plan: CrewSettings) -> ConductorSettings:
        """As the plan says."""
        return cls(
            workers=plan.workers,
            command=plan.worker,
            poll=plan.poll,
            beat=plan.beat,
            stale=plan.stale_after,
            hung=plan.hung,
            grace=plan.grace,
            claim_within=plan.claim_within,
            limits=RestartLimits(
                redispatches=plan.redispatches,
                restarts=RestartIntensity(restarts=plan.restarts, seconds=plan.restart_seconds),
                deaths=RestartIntensity(restarts=plan.deaths, seconds=plan.death_seconds),
            ),
            attended=plan.attended,
            reviewed_by_person=plan.review == "person",
            conductor_stale=plan.conductor_stale,
        )
