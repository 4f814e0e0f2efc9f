"""Another key of the same upstream: when it is tried, and what it counts for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.domain import events as ev
from rung.core.domain.failures import Evidence, Failure, Kind, Phase
from rung.core.domain.incident import Incident
from rung.core.domain.request import Request
from rung.core.policy.breaker import CallVerdict
from rung.core.policy.parser import parse_policy
from rung.core.recovery.circuit import breaker_verdict, gives_up_service
from rung.core.recovery.decide import decide

POLICY = parse_policy({"ladder": "call", "retries": 2, "backoff": {"base": 0.0}})
KEY_KINDS = (Kind.RATE_LIMIT, Kind.QUOTA_EXHAUSTED, Kind.AUTH_ERROR, Kind.MISSING_CREDENTIALS)


def about_key(kind: Kind, key: str, spare: int, **more: Any) -> Failure:
    evidence = Evidence(key=key, spare_keys=spare)._replace(**more)
    return Failure(kind, kind is Kind.RATE_LIMIT, "test", "refused", 0.0 if spare else None, evidence)


def opened() -> Incident:
    return Incident.of([ev.Opened(0.0, "i", ev.IncidentContext("call", "test"), Request(model="m", agent="a"))])


def fail(incident: Incident, failure: Failure) -> ev.Decision:
    incident.fold(ev.AttemptFailed(0.0, failure, 0.0, 0.0, may_retry=True))
    decision = decide(incident, failure, POLICY, 0.0, 0.5)
    incident.fold(ev.Decided(0.0, decision))
    return decision


@pytest.mark.parametrize("kind", KEY_KINDS)
def test_the_next_key_at_once(kind: Kind) -> None:
    """A failure of a key is repeated at once while another is usable; it is an attempt, and no retry of the model."""
    incident = opened()
    for left in (2, 1):
        decision = fail(incident, about_key(kind, f"K{left}", left))
        assert isinstance(decision, ev.Repeat)
        assert (decision.wait, decision.other_key, decision.until) == (0.0, True, None)
    assert (incident.attempts, incident.key_switches, incident.retries_of_model) == (2, 2, 0)
    assert (dict(incident.retries), incident.path) == ({}, ())
    last = fail(incident, about_key(kind, "K0", 0))
    assert not (isinstance(last, ev.Repeat) and last.other_key)


def test_not_after_output() -> None:
    """After output that the client has seen, the request is not repeated with another key."""
    failure = about_key(Kind.RATE_LIMIT, "K", 1, output_started=True, phase=Phase.STREAM)
    decision = fail(opened(), failure)
    assert not isinstance(decision, ev.Repeat)


@pytest.mark.parametrize("attempts", [1, 2, 3])
def test_within_the_budget(attempts: int) -> None:
    """Attempts with other keys count for the budget of attempts."""
    policy = POLICY.replace(budget=parse_policy({"attempts": attempts}).budget)
    incident = opened()
    for number in range(1, attempts + 1):
        failure = about_key(Kind.AUTH_ERROR, f"K{number}", 5)
        incident.fold(ev.AttemptFailed(0.0, failure, 0.0, 0.0, may_retry=True))
        decision = decide(incident, failure, policy, 0.0, 0.5)
        incident.fold(ev.Decided(0.0, decision))
        assert isinstance(decision, ev.Finish) == (number == attempts)


@given(st.lists(st.tuples(st.sampled_from(KEY_KINDS), st.sampled_from("ABC"), st.integers(0, 2)), max_size=40))
def test_it_ends(failures: list[tuple[Kind, str, int]]) -> None:
    """Between two other decisions each key is switched away from at most once, whatever the upstream reports."""
    incident, seen = opened(), set()
    for kind, key, spare in failures:
        decision = fail(incident, about_key(kind, key, spare))
        if isinstance(decision, ev.Repeat) and decision.other_key:
            assert key not in seen
            seen.add(key)
        elif isinstance(decision, ev.Finish):
            return
        elif not spare:
            seen.clear()


@pytest.mark.parametrize("spare", [0, 1])
def test_the_circuit_of_the_others(spare: int) -> None:
    """A rate limit counts against the circuit only if no other key is usable."""
    failure = about_key(Kind.RATE_LIMIT, "K", spare)
    assert breaker_verdict(failure) is (CallVerdict.NEUTRAL if spare else CallVerdict.BAD)
    assert gives_up_service(ev.HandOver(0, "b", "", None, "rate_limit"), failure) is (not spare)
