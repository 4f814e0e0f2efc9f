"""Compaction for a model or agent handed over to: its context window may be smaller than that of the first one. Pure functions.

The first one keeps its request: a provider's prompt cache serves only an unchanged conversation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.core.domain.events import Change, Decision, HandOver
from rung.core.domain.failures import Kind
from rung.core.domain.ladder import MECHANICAL_ACTIONS, Action
from rung.core.recovery.limits import exceeds_budget
from rung.core.recovery.replay_safety import has_visible_effects

if TYPE_CHECKING:
    from rung.core.domain.failures import Failure
    from rung.core.domain.incident import Incident
    from rung.core.domain.ladder import Rung
    from rung.core.policy.policy import Policy


def compact_for_target(incident: Incident, failure: Failure, policy: Policy) -> Change | None:
    """Return the compaction for a model or agent that has just been handed over to and finds the request too long.

    It is made once per handover, however often the ladder's rung was used before. None if it is not possible.
    """
    if failure.kind is not Kind.CONTEXT_LIMIT or not incident.handed_over:
        return None
    if not isinstance(incident.active_decision, HandOver) or _repeats_output(incident, failure):
        return None
    for index, rung in enumerate(policy.ladder.rungs):
        if rung.action is Action.COMPACT and _applies(rung, incident, failure):
            return Change(index, Action.COMPACT, 0.0, failure.kind)
    return None


def stays_with_target(before: Decision | None, decision: Decision, incident: Incident) -> bool:
    """Whether a decision changes the form of the request for the model or agent that the work was handed over to.

    `before` is the decision that the failed attempt followed. A broken stream is resumed where it broke.
    """
    if not isinstance(decision, Change) or decision.action not in MECHANICAL_ACTIONS:
        return False
    if isinstance(before, HandOver):
        return decision.action is Action.COMPACT or not incident.target_rejected
    return isinstance(before, Change) and before.action in MECHANICAL_ACTIONS


def _repeats_output(incident: Incident, failure: Failure) -> bool:
    """Whether the compacted request would repeat visible output. One that resumes an answer goes on where that stands."""
    resumes = incident.resuming and failure.evidence.progress is False
    return has_visible_effects(incident, failure) and not resumes


def _applies(rung: Rung, incident: Incident, failure: Failure) -> bool:
    return not exceeds_budget(incident, rung.cost) and (rung.applies_to is None or failure.kind in rung.applies_to)
