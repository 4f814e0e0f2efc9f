"""Before a new plan: the cause is investigated if there is an investigator, and the old approach is kept as known-bad."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.core.domain import events as ev
from rung.core.recovery.limits import seconds_left
from rung.engine.loop.moves import CallPort

if TYPE_CHECKING:
    from collections.abc import Generator

    from rung.core.domain.failures import Failure
    from rung.engine.loop.moves import Move, Reply, Steps
    from rung.engine.loop.run import RecoveryRun


def abandon_approach(run: RecoveryRun, decision: ev.Change | ev.HandOver, failure: Failure) -> Steps:
    """Record the approach that the decision abandons, with the cause that the investigator found."""
    from rung.core.recovery.known_bad import abandons, describe_approach, is_recorded

    incident = run.incident
    if not abandons(decision, run.policy.ladder, failure) or is_recorded(incident, decision.rung):
        return
    cause = yield from _investigate(run, failure)
    approach = describe_approach(incident, failure)
    run.append(ev.Abandoned(run.clock.now(), decision.rung, approach, cause))


def _investigate(run: RecoveryRun, failure: Failure) -> Generator[Move, Reply, str]:
    """Return the cause of a failure of the work; empty without an investigator, or if it fails."""
    from rung.core.classify.evidence import clip
    from rung.core.classify.redaction import redacted
    from rung.core.domain.failures import INFRASTRUCTURE_KINDS
    from rung.core.recovery.known_bad import MAX_CAUSE_CHARACTERS

    if run.investigate is None or failure.kind in INFRASTRUCTURE_KINDS:
        return ""
    seconds = seconds_left(run.incident, run.policy, run.clock.now())
    cause, error = yield CallPort(run.investigate, (run.incident.request, run.incident), seconds)
    if error is not None:
        run.record_crash("investigate", error)
        return ""
    return redacted(clip(str(cause or "").strip(), MAX_CAUSE_CHARACTERS))
