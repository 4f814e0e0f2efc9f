"""Conditions of the rungs: why a retry or another rung cannot be taken now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.classify.error_types import is_listed
from rung.core.domain.dollars import format_dollars
from rung.core.domain.failures import PROVIDER_KINDS, Phase, is_resumable
from rung.core.domain.ladder import HANDOVER_ACTIONS, INSTRUCTING_ACTIONS, Action, Rung
from rung.core.domain.skipped_rungs import EXHAUSTED
from rung.core.recovery.handover import can_follow_session, used_by_session
from rung.core.recovery.limits import exceeds_budget, has_timed_out, why_not_affordable
from rung.core.recovery.replay_safety import UNSAFE_REPLAY, has_visible_effects
from rung.core.recovery.reserved_attempts import why_reserved
from rung.core.recovery.silent_route import (
    breaks_again,
    has_other_route,
    is_silent,
    stands_still,
)

if TYPE_CHECKING:
    from rung.core.domain.failures import Failure
    from rung.core.domain.incident import Incident
    from rung.core.policy.policy import Policy

UNREAD_INPUT: Final = "the command does not read its input, so no instruction reaches it"  # why a rung is skipped
_NO_ATTEMPT_ON_SAME_MODEL: Final = HANDOVER_ACTIONS | {Action.ASK, Action.SURFACE}
# Actions that produce the answer again from its beginning.
_REGENERATES_ANSWER: Final = frozenset({Action.RETRY_WITH_CONTEXT, Action.RAISE_LIMIT, Action.COMPACT})


def is_exhausted(incident: Incident, policy: Policy, index: int, now: float) -> bool:
    """Whether a rung has no try or no time left in this incident."""
    rung = policy.ladder.rungs[index]
    if rung.spent_with and is_exhausted(incident, policy, policy.ladder.index(rung.spent_with), now):
        return True
    used = incident.tries_used.get(index, 0)
    if not (rung.action in HANDOVER_ACTIONS and can_follow_session(incident, policy)):
        used += used_by_session(incident, rung)
    timed_out = has_timed_out(rung, incident.entered_at.get(index, now), now)
    return index in incident.exhausted or used >= rung.tries or timed_out


def why_not_retry(
    incident: Incident, failure: Failure, policy: Policy, rung: Rung, tried: int, wait: float, now: float
) -> str:
    """Return why the request may not be sent again unchanged; empty if it may."""
    if not failure.retryable:
        return "the failure is not retryable"
    if not is_listed(failure, policy.retry):
        return "the policy does not retry this kind"
    if tried >= rung.tries:
        return f"all {rung.tries} tries are used"
    if too_expensive := why_not_affordable(incident, policy, incident.request):
        return too_expensive
    if failure.retry_after is not None and failure.retry_after > policy.retry_after_cap:
        return f"asked to wait {failure.retry_after:g} s, the cap is {policy.retry_after_cap:g} s"
    if has_visible_effects(incident, failure):
        return UNSAFE_REPLAY
    if is_silent(failure) and can_hand_over(incident, failure, policy, now):
        return "the provider is silent, and another model or agent is left"
    if rung.seconds is not None and failure.retry_after is None and incident.backed_off + wait > rung.seconds:
        return f"the waits would exceed the rung's {rung.seconds:g} s"
    if incident.rung >= 0 and has_timed_out(
        policy.ladder.rungs[incident.rung], incident.entered_at[incident.rung] - wait, now
    ):
        return "the wait would exceed the time limit of the current rung"
    if incident.deadline is not None and now + wait >= incident.deadline:
        return "the wait would exceed the deadline"
    if not incident.retry_budget_ok:
        return (
            "the shared retry budget is spent: too many calls of this process are retried (retry_budget=None lifts it)"
        )
    return ""


def interrupted_mid_stream(failure: Failure) -> bool:
    """Whether the provider failed in the middle of a stream: the client has the beginning, so the rest is resumed."""
    evidence = failure.evidence
    return failure.kind in PROVIDER_KINDS and evidence.phase is Phase.STREAM and evidence.output_started


def why_not_rung(incident: Incident, failure: Failure, policy: Policy, index: int, wait: float, now: float) -> str:
    """Return why a rung other than retry cannot be taken; empty if it can."""
    rung = policy.ladder.rungs[index]
    if is_exhausted(incident, policy, index, now):
        return incident.exhausted.get(index, EXHAUSTED)
    resumes_stream = rung.action is Action.RESUME and interrupted_mid_stream(failure)
    if rung.applies_to is not None and failure.kind not in rung.applies_to and not resumes_stream:
        return f"does not apply to {failure.kind}"
    if rung.action is Action.RESUME and (elsewhere := _why_resume_elsewhere(incident, failure, policy, now)):
        return elsewhere
    if rung.max_missing_sections is not None and len(failure.evidence.missing) > rung.max_missing_sections:
        return f"more than {rung.max_missing_sections} sections are missing"
    if unchangeable := _why_unchangeable(incident, rung):
        return unchangeable
    if too_expensive := _why_too_expensive(incident, policy, rung):
        return too_expensive
    if rung.action in _REGENERATES_ANSWER and has_visible_effects(incident, failure):
        return UNSAFE_REPLAY
    if wait > 0:
        if failure.retry_after is not None and failure.retry_after > policy.retry_after_cap:
            return f"asked to wait {failure.retry_after:g} s, the cap is {policy.retry_after_cap:g} s"
        if rung.seconds is not None and now + wait >= incident.entered_at.get(index, now) + rung.seconds:
            return "the wait would exceed the rung's time limit"
        if incident.deadline is not None and now + wait >= incident.deadline:
            return "the wait would exceed the deadline"
    return ""


def _why_unchangeable(incident: Incident, rung: Rung) -> str:
    """Return that the attempt cannot be given what the rung changes; empty if it can."""
    if incident.request is None and rung.action not in (Action.ASK, Action.SURFACE):
        return "the call cannot be changed: it was not given as a request"
    first = incident.first_request  # it gets the instructions, also after a handover
    if (
        incident.unread_by
        and rung.action in INSTRUCTING_ACTIONS
        and first is not None
        and first.agent in incident.unread_by
    ):
        return UNREAD_INPUT
    return ""


def _why_too_expensive(incident: Incident, policy: Policy, rung: Rung) -> str:
    """Return that a rung, or its attempt on the same model, costs more than is left. A handover has a price of its own."""
    if exceeds_budget(incident, rung.cost):
        return f"would cost {format_dollars(rung.cost)}, more than the remaining budget"
    if rung.action in _NO_ATTEMPT_ON_SAME_MODEL:
        return ""
    return why_not_affordable(incident, policy, incident.request)


def _why_resume_elsewhere(incident: Incident, failure: Failure, policy: Policy, now: float) -> str:
    """Return why another model or agent is to resume the stream; empty if the current one is."""
    if not is_resumable(failure):
        return ""
    if is_silent(failure) or stands_still(incident, failure):
        why = "the stream makes no progress, and another model or agent can resume it"
    elif breaks_again(incident):
        why = "the stream broke again and again, and another model or agent can resume it"
    else:
        why = next(filter(None, (why_reserved(incident, policy, each) for each in _handover_rungs(policy))), "")
    return why if why and can_hand_over(incident, failure, policy, now) else ""


def _handover_rungs(policy: Policy) -> list[int]:
    return [index for index, rung in enumerate(policy.ladder.rungs) if rung.action in HANDOVER_ACTIONS]


def can_hand_over(incident: Incident, failure: Failure, policy: Policy, now: float) -> bool:
    """Whether a rung of the ladder can hand the work over now, without asking a person."""
    return any(
        index >= incident.rung
        and not why_not_rung(incident, failure, policy, index, 0.0, now)
        and has_other_route(incident, failure, policy, index)
        for index in _handover_rungs(policy)
    )
