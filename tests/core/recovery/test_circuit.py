"""Failures as evidence about a service."""

from __future__ import annotations

import pytest

from rung.core.classify.classifier import classify
from rung.core.domain.events import Finish, HandOver, Repeat, Status
from rung.core.domain.failures import Evidence, Phase
from rung.core.policy.breaker import CallVerdict
from rung.core.recovery.circuit import breaker_verdict, gives_up_service


@pytest.mark.parametrize(("status", "opens"), [(503, True), (529, True), (408, False), (400, False), (401, False)])
def test_an_outage_opens_the_circuit_and_a_slow_model_does_not(status: int, opens: bool) -> None:
    """A call that is handed over gives its service up if it is down, not if it is slow or the request is wrong."""
    failure = classify(Evidence(status=status))
    assert gives_up_service(HandOver(0, "b", "", None, "overloaded"), failure) is opens
    assert gives_up_service(Repeat(0, 9.0, "overloaded", (), 300.0), failure) is opens
    assert not gives_up_service(Repeat(0, 1.0, "overloaded"), failure)
    assert not gives_up_service(Finish(0, Status.FAILED, "overloaded"), failure)


def test_a_tool_error_says_nothing_about_the_model() -> None:
    """The same status counts against the service if the call failed, and not if a tool did."""
    assert breaker_verdict(classify(Evidence(status=503))) is CallVerdict.BAD
    assert breaker_verdict(classify(Evidence(status=503, phase=Phase.TOOL))) is CallVerdict.NEUTRAL
