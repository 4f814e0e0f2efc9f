"""Resume points of interrupted recoveries, computed from their events."""

from __future__ import annotations

from typing import Any

import pytest

from rung.core.domain import events as ev
from rung.core.domain.failures import Failure, Kind
from rung.core.domain.incident import Incident
from rung.core.domain.ladder import Action
from rung.core.domain.request import Request
from rung.core.policy.parser import policy as make_policy
from rung.core.recovery.resume_point import (
    ResumePoint,
    decide_after_process_death,
    find_resume_point,
    process_death_failure,
)

POLICY = make_policy("task", models=["small", "large"])
FAILURE = Failure(Kind.TIMEOUT, True, "timed-out", "no")
REQUEST = Request(prompt="p", model="small")
OPTIONS = (ev.Option("retry", "again"), ev.Option("stop", "stop"), ev.Option("decline", "no"))


def opened(**terms: Any) -> ev.Opened:
    return ev.Opened(0.0, "i", ev.IncidentContext("task", "default", **terms), REQUEST)


def failed(at: float = 1.0) -> ev.AttemptFailed:
    return ev.AttemptFailed(at, FAILURE, 1.0, 0.0, True)


def decided(decision: ev.Decision, at: float = 2.0) -> ev.Decided:
    return ev.Decided(at, decision)


REPEAT = ev.Repeat(0, 10.0, "x")
CHANGE = ev.Change(1, Action.NUDGE, 4.0, "x")
HAND_OVER = ev.HandOver(3, "large", "", None, "x")
ASK = ev.Ask(4, "what now?", OPTIONS, None, "", "", "x")
FINISH = ev.Finish(4, ev.Status.PARTIAL, "x")
CHANGED = ev.Changed(3.0, REQUEST.replace(recovery="r"), "d", ("recovery",), "nudge")


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], ResumePoint()),
        ([ev.StepCompleted(0.5, "a")], ResumePoint()),
        ([failed()], ResumePoint(FAILURE, needs_decision=True)),
        ([failed(), decided(REPEAT)], ResumePoint(wait=7.0)),  # of the 10 s from 2.0 on, at 5.0
        ([failed(), decided(REPEAT), failed(3.0)], ResumePoint(FAILURE, needs_decision=True)),
        ([failed(), decided(CHANGE)], ResumePoint(FAILURE, CHANGE)),
        ([failed(), decided(CHANGE), CHANGED], ResumePoint(wait=1.0)),
        ([failed(), decided(CHANGE), ev.Skipped(3.0, 1, "x")], ResumePoint(FAILURE, needs_decision=True)),
        ([failed(), decided(HAND_OVER)], ResumePoint(FAILURE, HAND_OVER)),
        ([failed(), decided(HAND_OVER), CHANGED], ResumePoint()),
        ([failed(), decided(ASK)], ResumePoint(FAILURE, ASK)),
        ([failed(), decided(FINISH)], ResumePoint(FAILURE, FINISH)),
        (
            [failed(), decided(CHANGE), CHANGED, failed(4.0), decided(HAND_OVER)],
            ResumePoint(FAILURE, HAND_OVER, CHANGE),
        ),
    ],
)
def test_where_it_goes_on(events: list[ev.Event], expected: ResumePoint) -> None:
    """A decision that was not carried out is; a wait keeps its moment; what was not decided about is decided."""
    assert find_resume_point([opened(), *events], POLICY, 5.0) == expected


@pytest.mark.parametrize(
    ("answer", "costs", "what"),
    [
        ("retry", (2.0, 0.1), "small would cost $2.00"),
        ("replan", (2.0, 0.1), "small would cost $2.00"),
        ("model:large", (0.1, 2.0), "large would cost $2.00"),
        ("approve", (0.1, 2.0), "large would cost $2.00"),
        ("approve", (0.1, 0.2), ""),
        ("model:large", (2.0, 0.1), ""),
        ("retry", (0.1, 2.0), ""),
    ],
)
def test_an_answer_does_not_raise_the_budget(answer: str, costs: tuple[float, float], what: str) -> None:
    """What a person chooses is refused if its known price exceeds what is left, also if the policy changed meanwhile."""
    small, large = costs
    policy = make_policy("task", models=[{"name": "small", "cost": small}, {"name": "large", "cost": large}])
    question = ASK._replace(model="large", estimate=large) if answer == "approve" else ASK
    start = opened()._replace(dollars=1.0)
    said = find_resume_point([start, failed(), decided(question), ev.Answered(3.0, answer)], policy, 5.0)
    assert isinstance(said.decision, ev.Finish) == bool(what)
    if isinstance(said.decision, ev.Finish):
        assert said.decision.reason == f"a person chose {answer!r}, but {what}, more than the remaining budget"


def test_an_answer_that_was_given_counts() -> None:
    """A question that was answered before the crash is not put again."""
    said = find_resume_point([opened(), failed(), decided(ASK), ev.Answered(3.0, "retry")], POLICY, 5.0)
    assert isinstance(said.decision, ev.Repeat)
    assert said.is_unrecorded
    declined = find_resume_point([opened(), failed(), decided(ASK), ev.Answered(3.0, "decline")], POLICY, 5.0)
    assert (declined.decision, declined.needs_decision, declined.is_unrecorded) == (None, True, False)


def test_an_attempt_that_was_cut_off() -> None:
    """Again if that does no harm; else a person is asked, and without one it ends partial."""
    fresh = Incident.of([opened(idempotent=True)])
    failure = process_death_failure(fresh)
    assert (failure.kind, failure.retryable, failure.evidence.side_effects) == (Kind.WORKER_DEAD, False, True)
    assert isinstance(decide_after_process_death(fresh, POLICY, 0.0), ev.Repeat)
    asked = decide_after_process_death(Incident.of([opened(attended=True)]), POLICY, 0.0)
    assert isinstance(asked, ev.Ask)
    assert {option.id for option in asked.options} == {"retry", "stop"}
    ended = decide_after_process_death(Incident.of([opened()]), POLICY, 0.0)
    assert isinstance(ended, ev.Finish)
    assert ended.status is ev.Status.PARTIAL
