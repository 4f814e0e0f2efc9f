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
from rung.core.recovery.decide import decide
from rung.core.recovery.first_retry import FirstRetryCache
from rung.core.recovery.limits import attempt_limit, seconds_left

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


@settings(max_examples=100)
@given(
    data=st.data(),
    policy=policies(),
    now=AMOUNT,
    deadline=st.none() | AMOUNT,
    idempotent=st.booleans(),
    jitter=st.floats(0, 1, exclude_max=True),
)
def test_a_cached_retry_is_the_decision(
    data: st.DataObject, policy: Policy, now: float, deadline: float | None, idempotent: bool, jitter: float
) -> None:
    """Whatever the cache holds, a retry that it returns, and its time limit, are those of `decide`."""
    context = ev.IncidentContext(
        "x", "x", idempotent=idempotent, rungs=tuple(each.name for each in policy.ladder.rungs)
    )
    cache = FirstRetryCache(policy, context)
    first = data.draw(failures())
    for failure in (first, data.draw(failures())._replace(kind=first.kind, retryable=first.retryable), first):
        cached = cache.lookup(failure, deadline, now, jitter)
        if cached is None:
            continue
        incident = Incident.of([ev.Opened(0.0, "x", context, None, deadline, policy.budget.dollars)])
        incident.fold(ev.AttemptFailed(0.0, failure, 0.0, 0.0, may_retry=True))
        assert cached == decide(incident, failure, policy, now, jitter)
        incident.fold(ev.Decided(now, cached))
        limit = attempt_limit(policy, deadline, now + 1)
        assert (None if limit is None else max(0.0, limit)) == seconds_left(incident, policy, now + 1)


def test_a_plain_retry_is_cached() -> None:
    """A transient failure under the default policy is answered from the cache."""
    policy = rung.policy("call")
    cache = FirstRetryCache(policy, ev.IncidentContext("call", ""))
    failure = Failure(kind=Kind.NETWORK, retryable=True, rule="test", retry_after=None, evidence=Evidence(text="x"))
    assert isinstance(cache.lookup(failure, None, 0.0, 0.5), ev.Repeat)
    assert cache.lookup(failure._replace(retry_after=1.0), None, 0.0, 0.5) is None
