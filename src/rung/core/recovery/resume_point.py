"""Where a recovery that was cut off goes on: a pure function of what it had written down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.domain import events as ev
from rung.core.domain.failures import Evidence, Failure, Kind
from rung.core.domain.incident import Incident
from rung.core.recovery.decide import decision_from_answer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.policy.policy import Policy

_ACTS: Final = (ev.AttemptFailed, ev.AttemptSucceeded)
RULE: Final = "cut-off"


class ResumePoint(NamedTuple):
    """Where to go on: wait, then do as decided about the failure; without a decision, attempt.

    `before` is the decision that stood when this one was made: what has to be undone first.
    """

    failure: Failure | None = None
    decision: ev.Decision | None = None
    before: ev.Decision | None = None
    wait: float = 0.0
    undecided: bool = False  # the failure has not been decided about
    unnoted: bool = False  # the decision follows from an answer, and is not written down yet


def point(events: Sequence[ev.Event], policy: Policy, now: float) -> ResumePoint:
    """The point at which these events of an open incident leave off."""
    incident = Incident.of(events)
    act = _last(events, *_ACTS)
    made = _last(events, ev.Decided)
    failure = incident.failure
    if failure is None:
        return ResumePoint()
    if made < act:
        return ResumePoint(failure, undecided=True)
    since = events[made]
    assert isinstance(since, ev.Decided)  # noqa: S101  # looked for
    decision, before = since.decision, Incident.of(events[:made]).active_decision
    if isinstance(decision, ev.Ask) and _last(events, ev.Answered) > made:
        obeyed = decision_from_answer(incident, policy, now)
        return ResumePoint(failure, obeyed, before, undecided=obeyed is None, unnoted=obeyed is not None)
    if isinstance(decision, ev.Change | ev.HandOver):
        if _last(events, ev.Skipped) > made:
            return ResumePoint(failure, undecided=True)
        if _last(events, ev.Changed) > made:
            wait = decision.wait if isinstance(decision, ev.Change) else 0.0
            return ResumePoint(wait=_left(since.at, wait, now))
    if isinstance(decision, ev.Repeat):  # the moment it was to be made at is what counts, not how long is left
        return ResumePoint(wait=_left(since.at, decision.wait, now))
    return ResumePoint(failure, decision, before)


def cut_off(incident: Incident) -> Failure:
    """What became of an attempt whose process died: nobody knows, so it may have done something."""
    number = incident.attempts + 1
    text = f"the process that made attempt {number} died before it ended; what it did is not known"
    return Failure(Kind.WORKER_DEAD, False, RULE, text, evidence=Evidence(text=text, side_effects=True))


def about_cut_off(incident: Incident, policy: Policy) -> ev.Decision:
    """What to do about it: again only if that does no harm; else a person decides, or it ends here."""
    rung = max(incident.rung, 0)
    if incident.terms.idempotent:
        return ev.Repeat(rung, 0.0, "its process died; the request is idempotent")
    last = len(policy.ladder.rungs) - 1
    why = "its process died during an attempt that may have had effects"
    if not incident.terms.attended:
        return ev.Finish(last, ev.Status.PARTIAL, why)
    options = (ev.Option("retry", "Do it again"), ev.Option("stop", "Stop here"))
    return ev.Ask(rung, f"{why}. Do it again?", options, None, "", "", Kind.WORKER_DEAD)


def _left(at: float, wait: float, now: float) -> float:
    return max(0.0, at + wait - now)


def _last(events: Sequence[ev.Event], *kinds: type) -> int:
    """The place of the last event of these kinds; -1 when there is none."""
    return next((place for place in range(len(events) - 1, -1, -1) if isinstance(events[place], kinds)), -1)
