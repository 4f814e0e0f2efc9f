"""Find where an interrupted durable recovery resumes: a pure function of its recorded events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.domain import events as ev
from rung.core.domain.failures import PROCESS_DEATH_RULE, Evidence, Failure, Kind
from rung.core.domain.incident import Incident
from rung.core.recovery.decide import decision_from_answer
from rung.core.recovery.limits import exhausted_cap
from rung.core.recovery.session_resume import session_to_continue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.policy.policy import Policy

_ATTEMPT_RESULTS: Final = (ev.AttemptFailed, ev.AttemptSucceeded)


class ResumePoint(NamedTuple):
    """Next action of a resumed recovery: wait, then carry out `decision`; without a decision, make the attempt.

    `previous_decision` was active when `decision` was made; its effects may have to be rolled back first.
    """

    failure: Failure | None = None
    decision: ev.Decision | None = None
    previous_decision: ev.Decision | None = None
    wait: float = 0.0
    needs_decision: bool = False  # no decision was recorded after the failure
    is_unrecorded: bool = False  # the decision follows from an answer and is not in the journal yet


def find_resume_point(events: Sequence[ev.Event], policy: Policy, now: float) -> ResumePoint:
    """Return where the events of an open incident end."""
    incident = Incident.of(events)
    attempt = _last_index(events, *_ATTEMPT_RESULTS)
    decided = _last_index(events, ev.Decided)
    failure = incident.failure
    if failure is None:
        return ResumePoint()
    if decided < attempt:
        return ResumePoint(failure, needs_decision=True)
    event = events[decided]
    assert isinstance(event, ev.Decided)  # noqa: S101  # for the type checker
    decision, previous = event.decision, Incident.of(events[:decided]).active_decision
    if isinstance(decision, ev.Ask) and _last_index(events, ev.Answered) > decided:
        chosen = decision_from_answer(incident, policy, now)
        return ResumePoint(failure, chosen, previous, needs_decision=chosen is None, is_unrecorded=chosen is not None)
    if isinstance(decision, ev.Change | ev.HandOver):
        if _last_index(events, ev.Skipped) > decided:
            return ResumePoint(failure, needs_decision=True)
        if _last_index(events, ev.Changed) > decided:
            wait = decision.wait if isinstance(decision, ev.Change) else 0.0
            return ResumePoint(wait=_remaining(event.at, wait, now))
    if isinstance(decision, ev.Repeat) and _last_index(events, ev.Unparked) > decided:
        return ResumePoint()
    if isinstance(decision, ev.Repeat):  # the retry keeps its scheduled time: downtime counts as waiting
        return ResumePoint(wait=_remaining(event.at, decision.wait, now))
    return ResumePoint(failure, decision, previous)


def process_death_failure(incident: Incident) -> Failure:
    """Return the failure of an attempt whose process died: its result is unknown, so side effects are assumed."""
    number = incident.attempts + 1
    text = f"the process died during attempt {number}; its side effects are unknown"
    return Failure(Kind.WORKER_DEAD, False, PROCESS_DEATH_RULE, text, evidence=Evidence(text=text, side_effects=True))


def decide_after_process_death(incident: Incident, policy: Policy, now: float) -> ev.Decision:
    """Return a retry if the request is idempotent, or if its agent continues its session; otherwise ask a person, or end.

    The retry is not a try of a rung: the attempt did not fail, so the run goes on as if its process had lived. But it is
    an attempt: a run that kills its process each time ends with its budget.
    """
    rung = max(incident.rung, 0)
    last = len(policy.ladder.rungs) - 1
    if spent := exhausted_cap(incident, policy, now):
        return ev.Finish(last, ev.Status.PARTIAL, spent)
    if incident.terms.idempotent:
        return ev.Repeat(rung, 0.0, "the process died; the request is idempotent")
    if session_to_continue(incident, policy) is not None:
        return ev.Repeat(rung, 0.0, "the process died; the session of its agent is continued")
    why = "the process died during an attempt that may have had side effects"
    if not incident.terms.attended:
        return ev.Finish(last, ev.Status.PARTIAL, why)
    options = (ev.Option("retry", "Retry"), ev.Option("stop", "Stop"))
    return ev.Ask(rung, f"{why}. Retry?", options, None, "", "", Kind.WORKER_DEAD)


def _remaining(at: float, wait: float, now: float) -> float:
    return max(0.0, at + wait - now)


def _last_index(events: Sequence[ev.Event], *types: type) -> int:
    """Return the index of the last event of these types; -1 if there is none."""
    return next((index for index in range(len(events) - 1, -1, -1) if isinstance(events[index], types)), -1)
