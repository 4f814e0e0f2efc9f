"""Attempts that retries leave to the fallbacks of a policy, where the cap on attempts would end the incident before. Pure.

A model or agent that the policy lists is to be reached: without a reserve, `attempts = 4` and three retries would never
reach it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.core.domain.ladder import HANDOVER_ACTIONS, Action
from rung.core.recovery.handover import used_by_session
from rung.core.recovery.limits import exceeds_budget

if TYPE_CHECKING:
    from rung.core.domain.incident import Incident
    from rung.core.policy.policy import Model, Policy


def why_reserved(incident: Incident, policy: Policy, handover: int) -> str:
    """Return that a retry would use an attempt which the handovers of this rung need; empty if there are enough.

    Call it only if the rung can hand over now.
    """
    attempts = policy.budget.attempts
    if attempts is None or policy.ladder.rungs[handover].action not in HANDOVER_ACTIONS:
        return ""
    left = attempts - (incident.attempts - incident.probes)
    reserved = min(left, _targets(incident, policy, handover))
    if left > reserved:
        return ""
    kept = "the last attempt is" if left == 1 else f"the last {left} attempts are"
    return f"{kept} kept for another model or agent"


def _targets(incident: Incident, policy: Policy, handover: int) -> int:
    """Return how many more models and agents the rung can hand over to."""
    rung = policy.ladder.rungs[handover]
    tries = rung.tries - incident.tries_used.get(handover, 0) - used_by_session(incident, rung)
    first = incident.first_request
    here = policy.rank(first.model) if first is not None else -1
    models = [
        model
        for model in policy.models
        if model.name not in incident.models
        and (rung.action is not Action.ESCALATE or policy.rank(model.name) > here)
        and _is_affordable(incident, model)
    ]
    agents = [] if rung.action is Action.ESCALATE else [each for each in policy.agents if each not in incident.agents]
    return max(1, min(tries, len(models) + len(agents)))


def _is_affordable(incident: Incident, model: Model) -> bool:
    return incident.dollar_cap is None or (bool(model.cost) and not exceeds_budget(incident, model.cost))
