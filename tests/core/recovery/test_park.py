"""Parking work until a limit reopens: a rung of its own, below the wait for a failing service."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rung
from rung.core.domain import events as ev
from rung.core.domain.failures import Evidence, Failure, Kind
from rung.core.domain.incident import Incident
from rung.core.domain.ladder import MAX_PARKS, Action
from rung.core.policy.presets import LADDERS
from rung.core.policy.serializer import policy_table
from rung.core.recovery.decide import decide
from rung.core.recovery.interventions import Intervention, InterventionType
from rung.core.recovery.resume_point import find_resume_point
from rung.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Sequence

HOUR = 3_600.0
SIX_HOURS = 6 * HOUR


def plan_limit(seconds: float) -> rung.AttemptError:
    """Return the error of a plan whose limit reopens in so many seconds, as Codex gets it."""
    return rung.AttemptError(
        f'{{"error": {{"type": "usage_limit_reached", "resets_in_seconds": {seconds:.0f}}}}}',
        status=429,
        code="usage_limit_reached",
    )


class Plan:
    """A plan whose limit reopens at a time, and that says so; records when it was called with which model."""

    def __init__(self, clock: FakeClock, seconds: float, *, works: Sequence[str] = ()) -> None:
        self.clock, self.ends, self.works = clock, clock.now() + seconds, works
        self.calls: list[tuple[float, str]] = []

    def __call__(self, request: rung.Request) -> str:
        self.calls.append((self.clock.now(), request.model))
        if self.clock.now() < self.ends and request.model not in self.works:
            raise plan_limit(self.ends - self.clock.now())
        return "done"


class Orders:
    """A journal through which a person intervenes at a time."""

    def __init__(self, clock: FakeClock, at: float, order: Intervention) -> None:
        self.clock, self.at, self.order = clock, at, order
        self.events: list[ev.Event] = []

    def append(self, incident: str, first: int, events: Sequence[ev.Event]) -> None:
        self.events += events

    def intervention(self, incident: str) -> Intervention | None:
        return self.order if self.clock.now() >= self.at else None

    def model_for(self, session: str) -> str:
        return ""


def recovered(attempt: Any, clock: FakeClock, *, ladder: str = "task", **settings: Any) -> rung.Outcome[str]:
    journal = settings.pop("journal", None)
    settings = {"park": SIX_HOURS, **settings}
    return rung.recover_sync(
        attempt,
        rung.Request(prompt="x", model="a"),
        policy=rung.policy(ladder, **settings),
        clock=clock,
        breakers=rung.BreakerRegistry(),
        retry_budget=rung.RetryBudget(),
        jitter=lambda: 0.5,
        journal=journal,
    )


@pytest.mark.parametrize("ladder", ["task", "call", "pipeline", "model", "crew"])
def test_a_plan_limit_is_parked_and_taken_up_at_its_reset(ladder: str) -> None:
    """On every ladder, one attempt meets the limit and the next one, just after the reset, succeeds."""
    clock = FakeClock()
    plan = Plan(clock, 3 * HOUR)
    outcome = recovered(plan, clock, ladder=ladder)
    assert outcome.status is rung.Status.RECOVERED
    assert [at - plan.ends for at, _ in plan.calls[1:]] == [pytest.approx(16, abs=1)]


def test_a_rate_limit_above_the_cap_of_retries_is_parked() -> None:
    """A Retry-After of hours is parked for; one that the retry rung waits for is a retry."""
    clock = FakeClock()
    for seconds, parked in ((7_200, True), (40, False)):
        limited = rung.AttemptError("rate limited", status=429, headers={"retry-after": str(seconds)})
        failures = [limited]

        def attempt(request: rung.Request, failures: list[rung.AttemptError] = failures) -> str:
            if failures:
                raise failures.pop()
            return "done"

        outcome = recovered(attempt, clock)
        assert outcome.status is rung.Status.RECOVERED
        decisions = [e.decision for e in outcome.events if isinstance(e, ev.Decided)]
        assert [ev.is_park(each) for each in decisions] == [parked]


def test_another_model_takes_the_work_before_it_is_parked() -> None:
    """A cheaper model that works takes over at once."""
    clock = FakeClock()
    plan = Plan(clock, 3 * HOUR, works=["b"])
    outcome = recovered(plan, clock, models=["b", "a"])
    assert (outcome.status, outcome.model) == (rung.Status.RECOVERED, "b")
    assert clock.now() < plan.ends


def test_after_a_failed_handover_the_model_whose_limit_reopens_first_gets_the_probe() -> None:
    """A fallback with a wrong key does not end the run: it is parked until the first model's limit reopens."""
    clock = FakeClock()
    plan = Plan(clock, 3 * HOUR)

    def attempt(request: rung.Request) -> str:
        if request.model == "b":
            raise rung.AttemptError("invalid x-api-key", status=401)
        return plan(request)

    outcome = recovered(attempt, clock, models=["b", "a"])
    assert (outcome.status, outcome.model) == (rung.Status.RECOVERED, "a")
    assert len(plan.calls) == 2


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"park": HOUR}, "the limit reopens in 3 h, the longest time parked is 1 h"),
        ({"park": 0}, "usage_limit_reached"),
    ],
)
def test_a_longer_limit_than_the_cap_ends_the_run_at_once(settings: dict[str, Any], reason: str) -> None:
    """Above the cap, and with `park = 0`, the run ends as without parking."""
    clock = FakeClock()
    plan = Plan(clock, 3 * HOUR)
    outcome = recovered(plan, clock, **settings)
    assert outcome.status is rung.Status.PARTIAL
    assert reason in outcome.reason
    assert len(plan.calls) == 1


def test_time_parked_counts_against_no_time_limit() -> None:
    """A run with a budget of ten minutes is parked for hours and goes on, with the time that it had left."""
    clock = FakeClock()
    plan = Plan(clock, 3 * HOUR)

    def attempt(request: rung.Request) -> str:
        clock.advance(60)
        return plan(request)

    outcome = recovered(attempt, clock, seconds=600, attempts=2)
    assert outcome.status is rung.Status.RECOVERED
    incident = Incident.of(outcome.events)
    opened = outcome.events[0].at
    (unparked,) = [event.at for event in outcome.events if isinstance(event, ev.Unparked)]
    assert incident.deadline == pytest.approx(opened + 600 + (unparked - opened - 60))
    assert (incident.parks, incident.probes, incident.parked_until) == (1, 1, None)


def test_the_deadline_of_an_enclosing_recovery_is_kept() -> None:
    """Inside another recovery, a limit that reopens after that one's deadline is not parked for."""
    clock = FakeClock()
    plan = Plan(clock, 3 * HOUR)
    inner: list[rung.Outcome[str]] = []

    def outer(request: rung.Request) -> str:
        inner.append(recovered(plan, clock))
        return "done"

    recovered(outer, clock, seconds=600)
    assert inner[0].status is rung.Status.PARTIAL
    assert "the deadline of the enclosing recovery" in inner[0].reason


def test_a_limit_that_does_not_reopen_is_probed_with_growing_waits_and_ends() -> None:
    """A stale reset never makes a run spin: the waits double up to half an hour, and the parks are counted."""
    clock = FakeClock()
    calls: list[float] = []

    def attempt(request: rung.Request) -> str:
        calls.append(clock.now())
        raise plan_limit(7_200) if len(calls) == 1 else plan_limit(60)

    outcome = recovered(attempt, clock)
    assert outcome.status is rung.Status.PARTIAL
    assert f"parked {MAX_PARKS} times already" in outcome.reason
    waits = [round((after - before) / 60) for before, after in pairwise(calls)]
    assert waits[1:6] == [1, 2, 4, 8, 16]
    assert set(waits[6:]) == {30}
    assert len(calls) == MAX_PARKS + 1


def test_a_later_reset_parks_again() -> None:
    """A probe that meets the limit with a new time is parked until that time."""
    clock = FakeClock()
    resets = [2 * HOUR, 5 * HOUR]

    def attempt(request: rung.Request) -> str:
        if resets:
            raise plan_limit(resets.pop(0))
        return "done"

    outcome = recovered(attempt, clock, attempts=2)
    assert outcome.status is rung.Status.RECOVERED
    untils = [
        e.decision.until - e.at for e in outcome.events if isinstance(e, ev.Decided) and ev.is_park(e.decision)
        if isinstance(e.decision, ev.Repeat) and e.decision.until is not None
    ]  # fmt: skip
    assert untils == [2 * HOUR, 5 * HOUR]


def test_a_person_wakes_a_parked_run() -> None:
    """The order to retry ends the park at once; the time until then counts against no limit."""
    clock = FakeClock()
    plan = Plan(clock, 3 * HOUR)
    journal = Orders(clock, clock.now() + 600, Intervention(InterventionType.RETRY, by="ops"))
    plan.ends = clock.now() + 3 * HOUR

    def attempt(request: rung.Request) -> str:
        if plan.calls:  # bought more credits
            plan.calls.append((clock.now(), request.model))
            return "done"
        return plan(request)

    outcome = recovered(attempt, clock, journal=journal)
    assert outcome.status is rung.Status.RECOVERED
    assert 600 <= clock.now() - outcome.events[0].at <= 610
    assert any(isinstance(event, ev.Unparked) for event in journal.events)


def test_a_person_moves_a_parked_run_to_another_model() -> None:
    """The order to retry with a model ends the park and sends the request to that model."""
    clock = FakeClock()
    plan = Plan(clock, 3 * HOUR, works=["b"])
    journal = Orders(clock, clock.now() + 600, Intervention(InterventionType.RETRY, by="ops", model="b"))
    outcome = recovered(plan, clock, journal=journal)
    assert (outcome.status, outcome.model) == (rung.Status.RECOVERED, "b")
    assert clock.now() < plan.ends


def test_a_person_stops_a_parked_run() -> None:
    """The order to cancel ends the run as partial, without another attempt."""
    clock = FakeClock()
    plan = Plan(clock, 3 * HOUR)
    journal = Orders(clock, clock.now() + 600, Intervention(InterventionType.CANCEL, by="ops"))
    outcome = recovered(plan, clock, journal=journal)
    assert outcome.status is rung.Status.PARTIAL
    assert "stopped by ops" in outcome.reason
    assert len(plan.calls) == 1
    assert Incident.of(outcome.events).parked_until is None


def test_a_parked_coroutine_can_be_cancelled() -> None:
    """Cancellation ends the park of an async recovery at once."""

    async def attempt(request: rung.Request) -> str:
        raise plan_limit(3 * HOUR)

    async def cancel_parked() -> None:
        parked = asyncio.Event()

        def listener(event: ev.Event, incident: Incident) -> None:
            if incident.parked_until is not None:
                parked.set()

        policy = rung.policy("task", park=SIX_HOURS)
        task: asyncio.Task[rung.Outcome[str]] = asyncio.create_task(
            rung.recover(attempt, "x", policy=policy, listeners=[listener])
        )
        await parked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel_parked())


def test_visible_output_is_not_repeated_after_a_park() -> None:
    """A request whose side effects were seen is not parked, unless it is idempotent."""
    clock = FakeClock()

    def attempt(request: rung.Request) -> str:
        rung.mark_side_effect()
        raise plan_limit(3 * HOUR)

    outcome = recovered(attempt, clock)
    assert not outcome.ok
    assert "replay is not safe" in outcome.reason


def test_a_resumed_run_goes_on_waiting_for_its_reset() -> None:
    """The events of a parked run lead back to the rest of its wait, and to none once it was taken up."""
    clock = FakeClock()
    outcome = recovered(Plan(clock, 3 * HOUR), clock)
    parked = next(n for n, e in enumerate(outcome.events) if isinstance(e, ev.Decided) and ev.is_park(e.decision))
    events = outcome.events[: parked + 1]
    incident = Incident.of(events)
    assert incident.parked_until == pytest.approx(events[0].at + 3 * HOUR)
    at = events[-1].at
    policy = rung.policy("task", park=SIX_HOURS)
    assert find_resume_point(events, policy, at + HOUR).wait == pytest.approx(2 * HOUR + 16)
    assert find_resume_point(events, policy, at + 9 * HOUR).wait == 0
    assert find_resume_point([*events, ev.Unparked(at + HOUR)], policy, at + HOUR).wait == 0


def test_levels_keep_their_numbers() -> None:
    """The end of a ladder has the level that the documents give it, with or without the rungs that wait below it."""
    for ladder in LADDERS.values():
        patient = ladder.with_waiting(park=60, patience=60)
        assert patient.level(len(patient.rungs) - 1) == ladder.level(len(ladder.rungs) - 1)
        assert [rung.action for rung in patient.rungs[-3:-1]] == [Action.PARK, Action.WAIT]
        assert patient.with_waiting(park=0, patience=0) == ladder


def test_a_policy_reads_back_with_its_park() -> None:
    """The table of a policy that parks is read as the same policy, and `park = 0` removes the rung again."""
    policy = rung.policy("call", park=120)
    assert rung.policy(**policy_table(policy)) == policy
    assert policy.replace(park=0) == rung.policy("call", park=0)


failures = st.builds(
    lambda kind, hint, phase_text: Failure(
        kind, kind is not Kind.QUOTA_EXHAUSTED, "rule", phase_text, hint, evidence=Evidence(text=phase_text)
    ),
    st.sampled_from(Kind),
    st.none() | st.floats(0, 1e7, allow_nan=False),
    st.sampled_from(["", "limit"]),
)


@given(
    story=st.lists(st.tuples(failures, st.floats(0, 1e5, allow_nan=False)), min_size=1, max_size=30),
    ladder=st.sampled_from(sorted(LADDERS)),
    cap=st.sampled_from([0.0, 60.0, SIX_HOURS, 8 * 86_400.0]),
    seconds=st.none() | st.floats(1, 1e5, allow_nan=False),
    jitter=st.floats(0, 1, allow_nan=False),
)
def test_properties_of_park_decisions(
    story: list[tuple[Failure, float]], ladder: str, cap: float, seconds: float | None, jitter: float
) -> None:
    """A park lies within the cap, waits past the reset, uses no budget, and moves the deadline by the time parked."""
    policy = rung.policy(ladder, park=cap, seconds=seconds, attempts=1_000)
    now = 1_000_000.0
    deadline = None if seconds is None else now + seconds
    incident = Incident.of(
        [ev.Opened(now, "i", ev.IncidentContext(ladder, "p"), rung.Request(prompt="x", model="a"), deadline)]
    )
    for failure, late in story:
        incident.fold(ev.AttemptFailed(now, failure, 0.0, 0.0, may_retry=True))
        decision = decide(incident, failure, policy, now, jitter)
        assert decision == decide(incident, failure, policy, now, jitter)
        before = (dict(incident.retries), dict(incident.tries_used), incident.rung, incident.deadline)
        incident.fold(ev.Decided(now, decision))
        if isinstance(decision, ev.Finish | ev.Ask):
            return
        if not ev.is_park(decision):
            now += getattr(decision, "wait", 0.0)
            continue
        assert isinstance(decision, ev.Repeat)
        assert decision.until is not None
        assert now <= decision.until <= now + cap
        assert decision.until < now + decision.wait <= decision.until + 32
        assert incident.parked_until == decision.until
        assert incident.parks <= MAX_PARKS
        assert not ev.is_retry(decision)
        assert (dict(incident.retries), dict(incident.tries_used), incident.rung) == before[:3]
        taken_up = now + decision.wait + late
        incident.fold(ev.Unparked(taken_up))
        if before[3] is not None:
            assert incident.deadline == pytest.approx(before[3] + taken_up - now)
        now = taken_up


def test_a_limit_without_a_reset_time_ends_the_run_and_says_why() -> None:
    """A plan's limit whose message names no reset time cannot be parked for: the end of the run says so."""

    def attempt(request: rung.Request) -> str:
        raise rung.AttemptError("Claude usage limit reached.")

    outcome = recovered(attempt, FakeClock())
    assert outcome.status is rung.Status.PARTIAL
    assert "park skipped: the message names no reset time" in outcome.reason
    without = recovered(attempt, FakeClock(), park=0)
    assert "reset time" not in without.reason


def test_a_reset_time_that_is_past_is_not_called_missing() -> None:
    """A session's limit that names a time further ahead than a session lasts names a past one: the end of the run says so."""

    def attempt(request: rung.Request) -> str:
        raise rung.AttemptError("You've hit your session limit · resets 4:20pm (UTC)")

    outcome = recovered(attempt, FakeClock(1_795_031_000.0))  # 19:43 UTC
    assert "park skipped: the reset time in the message is past, or not clear" in outcome.reason
