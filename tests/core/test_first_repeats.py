"""Cached first retries equal those that `decide` makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

import rung
from rung.core.domain import events as ev
from rung.core.domain.failures import NEVER_RETRYABLE, TRANSIENT, Evidence, Failure, Kind, Phase
from rung.core.domain.incident import Incident
from rung.core.policy.backoff import Backoff
from rung.core.policy.budget import Budget
from rung.core.policy.parser import parse_ladder
from rung.core.policy.presets import LADDERS
from rung.core.recovery.decide import FirstRetryCache, decide

if TYPE_CHECKING:
    from rung.core.policy.policy import Policy

AMOUNT = st.integers(0, 64).map(lambda eighths: eighths / 8)  # exact in floats


def mostly(usual: Any, *others: Any) -> st.SearchStrategy[Any]:
    """What is simple enough to be remembered, four times out of five."""
    return st.integers(0, 9).flatmap(lambda n: st.just(usual) if n < 8 else st.sampled_from(others))


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Any policy that bears on a first repeat."""
    backoff = Backoff(
        base=draw(AMOUNT), multiplier=draw(st.sampled_from([1, 2])), cap=draw(AMOUNT), jitter=draw(st.booleans())
    )
    ladder = draw(st.sampled_from(list(LADDERS.values())))
    if draw(st.booleans()):
        seconds = draw(mostly(None, 0.0, 1.0, 4.0))
        rungs = [{"action": "retry", "tries": draw(mostly(1, 0)), "seconds": seconds}, {"action": "surface"}]
        ladder = parse_ladder({"name": "own", "rungs": rungs})
    kinds = st.frozensets(st.sampled_from([kind for kind in Kind if kind not in NEVER_RETRYABLE]))
    return rung.policy(
        ladder,
        backoff=backoff,
        budget=Budget(attempts=draw(mostly(None, 1, 2)), dollars=draw(mostly(None, 0.0, 1.0))),
        retry=[*draw(kinds), *draw(mostly(("transient",), ()))],
        retry_after_cap=draw(AMOUNT),
    )


@st.composite
def failures(draw: st.DrawFn) -> Failure:
    """Any failure, as classify could have named it."""
    evidence = Evidence(
        text="x",
        phase=draw(st.sampled_from(Phase)),
        output_started=draw(mostly(False, True)),
        side_effects=draw(mostly(False, True)),
        missing=draw(st.sampled_from([(), ("a", "b", "c")])),
        repeats=draw(st.integers(0, 9)),
    )
    return Failure(
        kind=draw(st.sampled_from(list(TRANSIENT)) | st.sampled_from(Kind)),
        retryable=draw(mostly(True, False)),
        rule="test",
        retry_after=draw(mostly(None, 0.0, 1.5, 99.0)),
        evidence=evidence,
    )


@st.composite
def incidents(draw: st.DrawFn, policy: Policy, failure: Failure) -> Incident:
    """An incident after this failure: mostly the first, sometimes one without an attempt, or after another."""
    terms = ev.IncidentContext(
        "x", "x", idempotent=draw(st.booleans()), rungs=tuple(each.name for each in policy.ladder.rungs)
    )
    deadline = draw(st.none() | AMOUNT)
    incident = Incident.of([ev.Opened(0.0, "x", terms, None, deadline, policy.budget.dollars)])
    if draw(mostly(False, True)):
        incident.fold(ev.AttemptFailed(0.0, failure, 0.0, 0.0, may_retry=True))
        incident.fold(ev.Decided(0.0, ev.Repeat(0, 0.0, failure.kind)))
    incident.fold(ev.AttemptFailed(0.0, failure, 0.0, draw(mostly(0.0, 0.5)), draw(mostly(True, False)), True))
    return incident


@settings(max_examples=300)
@given(data=st.data(), policy=policies(), now=AMOUNT, jitter=st.floats(0, 1, exclude_max=True))
def test_the_same_decisions(data: st.DataObject, policy: Policy, now: float, jitter: float) -> None:
    """Whatever was decided before under a policy, the next decision is the one that `decide` makes."""
    remembered = FirstRetryCache(policy)
    first = data.draw(failures())
    for failure in (first, data.draw(failures())._replace(kind=first.kind, retryable=first.retryable), first):
        incident = data.draw(incidents(policy, failure))
        expected = decide(incident, failure, policy, now, jitter)
        assert remembered.decide(incident, failure, now, jitter) == expected
