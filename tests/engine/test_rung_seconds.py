"""What the seconds of a rung limit: waits on retry, everything on the rungs above."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rung
from rung.core.domain import events as ev
from rung.core.domain.failures import Evidence, Failure, Kind
from rung.core.domain.incident import Incident
from rung.core.policy.backoff import Backoff
from rung.core.recovery.decide import decide
from rung.testing import HttpError, Script

if TYPE_CHECKING:
    from tests.conftest import World

ASK = rung.Request(prompt="the task", model="small")


def test_a_repeated_attempt_at_work_is_not_cut_by_the_retry_rung(world: World) -> None:
    """On `task` a repeated attempt may work for minutes: the thirty seconds of retry are seconds of waiting."""

    def slow(request: rung.Request) -> str:
        world.clock.advance(600)
        return "done"

    outcome = world.recover(Script(HttpError(529, "overloaded"), slow), ASK)
    assert (outcome.status, outcome.value, outcome.attempts) == ("recovered", "done", 2)


def test_slow_failures_leave_the_retries_their_time(world: World) -> None:
    """Attempts that fail after a minute each use up none of the retry rung's seconds."""

    def slow(request: rung.Request) -> str:
        world.clock.advance(60)
        raise HttpError(503, "down")

    outcome = world.recover(Script(slow), ASK, policy=rung.policy("task", patience=0))
    assert outcome.attempts == 4


@pytest.mark.parametrize("seconds", [29, 45, 60])
def test_a_retry_after_up_to_the_cap_is_waited_for(world: World, seconds: int) -> None:
    """On `task` a Retry-After up to `retry_after_cap` is waited for, though the rung has thirty seconds of backoff."""
    script = Script(HttpError(429, "slow down", {"retry-after": str(seconds)}), "done")
    outcome = world.recover(script, ASK)
    assert (outcome.status, outcome.attempts) == ("recovered", 2)
    assert world.clock.sleeps[0] >= seconds


def test_a_retry_after_date_without_a_date_header_is_waited_for(world: World) -> None:
    """A date is measured by the recovery's clock if the response does not say its own time."""
    world.clock.time = 1_792_567_680.0
    later = HttpError(429, "slow down", {"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT"})
    outcome = world.recover(Script(later, "done"), ASK)
    assert outcome.status == "recovered"
    assert 30 <= world.clock.sleeps[0] <= 38


def test_backoff_ends_with_the_rung(world: World) -> None:
    """A rung whose seconds are spent with waiting is left, whatever tries remain."""
    policy = rung.policy("task", backoff=Backoff(base=16, jitter=False), patience=0)
    outcome = world.recover(Script(HttpError(503, "down")), ASK, policy=policy)
    skipped = [skip for e in outcome.events if isinstance(e, ev.Decided) for skip in e.decision.skipped]
    assert world.clock.sleeps == [16]
    assert (0, "the waits would exceed the rung's 30 s") in skipped


def test_the_limit_of_a_nudge_is_final(world: World) -> None:
    """A nudge that has used its time is not repeated, though retry has seconds left."""

    def slow(request: rung.Request) -> str:
        world.clock.advance(301)
        raise HttpError(503, "down")

    outcome = world.recover(Script(RuntimeError("x"), slow, "done"), ASK, policy=rung.policy("task"))
    names = [e.decision.rung for e in outcome.events if isinstance(e, ev.Decided)]
    assert names[:1] == [1]
    assert 0 not in names


def test_trouble_in_mid_stream_pauses_between_nudges(world: World) -> None:
    """On `task` an overloaded service that breaks streams off is given time before each nudge and the replan."""
    broken = rung.AttemptError("overloaded", finding="overloaded", phase="stream", output_started=True)
    outcome = world.recover(Script(broken), ASK)
    changes = [e.decision for e in outcome.events if isinstance(e, ev.Decided) and isinstance(e.decision, ev.Change)]
    assert [change.action for change in changes[:4]] == ["nudge", "nudge", "nudge", "replan"]
    assert [change.wait for change in changes[:4]] == [0.5, 1.0, 2.0, 4.0]
    assert world.clock.sleeps[:4] == [0.5, 1.0, 2.0, 4.0]


@given(
    hints=st.lists(st.one_of(st.none(), st.floats(0, 120)), min_size=1, max_size=8),
    jitter=st.floats(0, 1, exclude_max=True),
    base=st.floats(0, 20),
)
def test_backoff_stays_within_the_rung_and_hints_within_the_cap(
    hints: list[float | None], jitter: float, base: float
) -> None:
    """Between two climbs the backoff of retries never exceeds the rung's seconds, and every hint up to the cap is obeyed."""
    policy = rung.policy("task", backoff=Backoff(base=base), park=0, patience=0)
    rungs = tuple(each.name for each in policy.ladder.rungs)
    incident = Incident.of([ev.Opened(0.0, "x", ev.IncidentContext("task", "", rungs=rungs), ASK)])
    now = waited = 0.0
    for hint in hints:
        failure = Failure(Kind.RATE_LIMIT, True, "test", "x", hint, Evidence(text="x"))
        incident.fold(ev.AttemptFailed(now, failure, 0.0, 0.0, may_retry=True))
        decision = decide(incident, failure, policy, now, jitter)
        if not isinstance(decision, ev.Repeat):
            assert hint is None or hint > policy.retry_after_cap or incident.retries.get(0, 0) == 3
            break
        assert hint is None or (decision.wait >= hint and hint <= policy.retry_after_cap)
        waited += decision.wait if hint is None else 0.0
        assert waited <= 30
        incident.fold(ev.Decided(now, decision))
        now += decision.wait + 1000  # an attempt at work uses up nothing
        incident.deadline = None
