"""Provider failures in the middle of a stream: another model resumes the answer if the ladder has a resume rung."""

from __future__ import annotations

from typing import Any

import pytest

from rung.core.domain import events as ev
from rung.core.domain.failures import Evidence, Failure, Kind, Phase, is_resumable
from rung.core.domain.incident import Incident
from rung.core.domain.request import Request
from rung.core.policy.policy import Model, Policy
from rung.core.policy.presets import CALL, MODEL
from rung.core.recovery.apply_rung import apply_rung
from rung.core.recovery.decide import decide


def broken(kind: Kind = Kind.OVERLOADED, **facts: Any) -> Failure:
    evidence = Evidence(text="gone", phase=Phase.STREAM, output="one two", output_started=True)._replace(**facts)
    return Failure(kind, True, "test", "gone", evidence=evidence)


def after(policy: Policy, *failures: Failure) -> tuple[Incident, ev.Decision]:
    """The incident after these failures, and the last decision."""
    request = Request(model="small", messages=({"role": "user", "content": "count"},))
    incident = Incident.of([ev.Opened(0.0, "i", ev.IncidentContext("call", "p"), request)])
    for failure in failures:
        incident.fold(ev.AttemptFailed(1.0, failure, 1.0, 0.0, may_retry=True))
        decision = decide(incident, failure, policy, 1.0, 0.5)
        incident.fold(ev.Decided(1.0, decision))
    return incident, decision


POLICY = Policy(ladder=CALL, models=(Model(name="small"), Model(name="large")))


def test_another_model_goes_on() -> None:
    """After the resumptions are spent the other model is asked to go on: its request quotes what was said."""
    incident, decision = after(POLICY, *[broken()] * 4)
    assert isinstance(decision, ev.HandOver)
    assert incident.resuming
    request, prompt = apply_rung(decision, incident, broken(), POLICY)
    assert prompt == "resume.broken"
    assert request.model == "large"
    assert request.messages[1] == {"role": "assistant", "content": "one two"}


def test_resumptions_wait_longer_each_time() -> None:
    """The first resumption comes at once; a service that breaks again is given time."""
    waits = [after(POLICY, *[broken()] * n)[1] for n in (1, 2, 3)]
    assert [isinstance(decision, ev.Change) for decision in waits] == [True] * 3
    first, second, third = (decision.wait for decision in waits if isinstance(decision, ev.Change))
    assert first == 0.0 < second < third


def test_a_ladder_that_does_not_resume_hands_nothing_over() -> None:
    """Where a ladder knows no resuming, a visible answer is not begun again elsewhere."""
    _, decision = after(POLICY.replace(ladder=MODEL), *[broken()] * 2)
    assert not isinstance(decision, ev.HandOver)


@pytest.mark.parametrize(
    ("failure", "can"),
    [
        (broken(), True),
        (broken(side_effects=True), False),
        (broken(output_started=False), False),
        (broken(Kind.REFUSAL), False),
    ],
)
def test_what_can_be_gone_on_with(failure: Failure, can: bool) -> None:
    """A service's trouble in the midst of words; not what had effects, nor what the model itself wanted."""
    assert is_resumable(failure) is can
