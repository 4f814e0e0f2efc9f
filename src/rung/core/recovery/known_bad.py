"""Known-bad paths: the approach that a new plan or a handover abandons, kept for whoever plans next. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.core.classify.evidence import clip
from rung.core.classify.redaction import redacted
from rung.core.domain import events as ev
from rung.core.domain.failures import INFRASTRUCTURE_KINDS, Phase
from rung.core.domain.ladder import HANDOVER_ACTIONS, Action

if TYPE_CHECKING:
    from rung.core.domain.failures import Failure
    from rung.core.domain.incident import Incident
    from rung.core.domain.ladder import Ladder

MAX_PLAN_CHARACTERS: Final = 1_000
MAX_OUTPUT_CHARACTERS: Final = 1_000
MAX_CAUSE_CHARACTERS: Final = 2_000
_ABANDONING: Final = frozenset({Action.REPLAN, Action.RESTRUCTURE, *HANDOVER_ACTIONS})


def abandons(decision: ev.Change | ev.HandOver, ladder: Ladder, failure: Failure) -> bool:
    """Whether the decision gives up the current approach, rather than correcting it, or leaving a provider that fails."""
    is_providers = failure.kind in INFRASTRUCTURE_KINDS and failure.evidence.phase not in (Phase.LIMIT, Phase.TOOL)
    if isinstance(decision, ev.HandOver) and is_providers:
        return False
    action = decision.action if isinstance(decision, ev.Change) else ladder.rungs[decision.rung].action
    return action in _ABANDONING


def is_recorded(incident: Incident, rung: int) -> bool:
    """Whether the approach that this try of the rung abandons is recorded already: a resumed run decides once."""
    return sum(1 for each in incident.abandoned if each.rung == rung) >= incident.tries_used.get(rung, 0)


def describe_approach(incident: Incident, failure: Failure) -> str:
    """Return the abandoned approach: what the agent was told to do, what it did, and why that failed."""
    # The request of the attempt, not the current one: the first model may be restored already.
    request, first = incident.failed_request, incident.first_request
    plan = "the task as it was given"
    if request is not None and first is not None and request.prompt != first.prompt:
        plan = request.prompt.partition("\nThe task")[0].strip() or plan
    who = ", ".join(filter(None, (request.model, request.agent))) if request is not None else ""
    parts = [
        f"plan: {clip(plan, MAX_PLAN_CHARACTERS)}",
        f"by: {who}" if who else "",
        f"steps finished: {clip(', '.join(incident.steps), 500)}" if incident.steps else "",
        f"output: {clip(failure.evidence.output.strip(), MAX_OUTPUT_CHARACTERS)}" if failure.evidence.output else "",
        f"failed with {failure.kind}: {clip(failure.message.strip(), 500)}",
    ]
    return redacted("\n".join(filter(None, parts)))


def planning_case(incident: Incident, failure: Failure) -> dict[str, Any]:
    """Return what an investigator or a planner is told, as JSON values without secrets."""
    first = incident.first_request
    return {
        "v": 1,
        "incident": incident.id,
        "task": redacted(first.prompt if first is not None else ""),
        "kind": failure.kind.value,
        "error": redacted(failure.message),
        "output": redacted(clip(failure.evidence.output)),
        "failures": [
            {"kind": each.kind.value, "error": redacted(clip(each.message, 500))} for each in incident.failures
        ],
        "steps": [redacted(step) for step in incident.steps],
        "known_bad": [each.approach for each in incident.abandoned],
        "cause": incident.cause,
    }
