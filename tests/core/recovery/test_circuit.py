"""Failures as evidence about a service."""

from __future__ import annotations

import pytest

from rung.core.classify.classifier import classify
from rung.core.domain.failures import Evidence, Phase
from rung.core.policy.breaker import CallVerdict
from rung.core.recovery.circuit import breaker_verdict, opens_circuit


@pytest.mark.parametrize(("status", "opens"), [(503, True), (529, True), (408, False), (400, False), (401, False)])
def test_an_outage_opens_the_circuit_and_a_slow_model_does_not(status: int, opens: bool) -> None:
    """A call that was handed over opens its circuit if its service is down, not if it is slow or the request is wrong."""
    assert opens_circuit([classify(Evidence(status=status))]) is opens


def test_a_tool_error_says_nothing_about_the_model() -> None:
    """The same status counts against the service if the call failed, and not if a tool did."""
    assert breaker_verdict(classify(Evidence(status=503))) is CallVerdict.BAD
    assert breaker_verdict(classify(Evidence(status=503, phase=Phase.TOOL))) is CallVerdict.NEUTRAL
