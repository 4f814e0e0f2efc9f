"""Waiting for a failing service: a rung of its own, just below the end of every ladder."""

from __future__ import annotations

import random
import re
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain import events as ev
from rung.core.domain.incident import Incident
from rung.core.domain.ladder import Action
from rung.core.policy.presets import LADDERS
from rung.core.policy.serializer import policy_table
from rung.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable

OVERLOADED = rung.AttemptError("Overloaded", status=529)


class Wall:
    """A service that fails until a time, and records when it was called with which model."""

    def __init__(self, clock: FakeClock, seconds: float, error: Exception = OVERLOADED) -> None:
        self.clock, self.ends, self.error = clock, clock.now() + seconds, error
        self.calls: list[tuple[float, str]] = []

    def __call__(self, request: rung.Request) -> str:
        self.calls.append((self.clock.now(), request.model))
        if self.clock.now() < self.ends:
            raise self.error.with_traceback(None)  # it would grow with each attempt
        return "done"


def recovered(
    wall: Wall,
    *,
    ladder: str = "call",
    template: str = "default",
    listener: Callable[..., object] | None = None,
    jitter: Callable[[], float] = lambda: 0.5,
    **settings: Any,
) -> rung.Outcome[str]:
    return rung.recover_sync(
        wall,
        rung.Request(prompt="x", model="a"),
        policy=rung.policy(ladder, template, **settings),
        clock=wall.clock,
        breakers=rung.BreakerRegistry(),
        retry_budget=rung.RetryBudget(),
        listeners=[] if listener is None else [listener],
        jitter=jitter,
    )


@pytest.mark.parametrize("ladder", ["task", "call", "pipeline", "model"])
@pytest.mark.parametrize("seconds", [30, 90, 240])
def test_an_outage_within_the_patience_is_waited_out(ladder: str, seconds: float) -> None:
    """Every ladder outlasts a service that is overloaded for a shorter time than the policy is patient."""
    wall = Wall(FakeClock(), seconds)
    outcome = recovered(wall, ladder=ladder, patience=280)
    assert outcome.status is rung.Status.RECOVERED
    assert wall.clock.now() - wall.ends <= 14


def test_without_patience_the_ladder_ends_as_before() -> None:
    """Patience 0 switches the rung off: after its retries a call fails."""
    wall = Wall(FakeClock(), 240)
    assert recovered(wall, patience=0).status is rung.Status.FAILED
    assert len(wall.calls) == 4


def test_waits_are_spread_and_few() -> None:
    """In four minutes of outage a call sends at most 28 requests, and never two within two seconds of waiting."""
    wall = Wall(FakeClock(), 240)
    recovered(wall, patience=280)
    assert len(wall.calls) <= 28
    times = [at for at, _ in wall.calls]
    waited = [after - before for before, after in pairwise(times[3:])]
    assert min(waited) >= 2


@pytest.mark.parametrize("ladder", ["task", "call", "model"])
def test_the_end_of_an_outage_is_noticed_soon(ladder: str) -> None:
    """In the middle a call is answered six seconds after an outage at most, and sends thirteen requests in one of 90 s."""
    chance, late, sent = random.Random(ladder), [], []
    for seconds in (10, 30, 60, 90, 300, 600) * 40:
        wall = Wall(FakeClock(), seconds)
        assert recovered(wall, ladder=ladder, jitter=chance.random, patience=1_000, seconds=2_000).ok
        late.append(wall.calls[-1][0] - wall.ends)
        sent += [len(wall.calls)] if seconds == 90 else []
    assert median(late) <= 6
    assert max(late) <= 14
    assert median(sent) <= 13


def test_long_backoffs_wait_long() -> None:
    """A policy whose retries wait for minutes asks a failing service every two minutes at most."""
    wall = Wall(FakeClock(), 3_600)
    assert recovered(wall, ladder="task", template="unattended").ok
    assert len(wall.calls) <= 50


def test_patience_ends_and_says_so() -> None:
    """After the patience the run ends with the provider's error, and names the spent patience."""
    wall = Wall(FakeClock(), 10_000)
    started = wall.clock.now()
    outcome = recovered(wall, patience=100)
    assert outcome.status is rung.Status.FAILED
    assert "the patience of 100 s is spent" in outcome.reason
    assert 100 <= wall.clock.now() - started <= 115  # and the waits of the three retries


def test_a_wait_is_not_an_attempt() -> None:
    """The requests after waits use nothing of the budget of attempts; the retries do."""
    wall = Wall(FakeClock(), 240)
    assert recovered(wall, patience=280, attempts=5).status is rung.Status.RECOVERED
    assert len(wall.calls) > 5


def test_another_model_comes_first() -> None:
    """A model that works takes over at once: nothing is waited for."""
    clock = FakeClock()
    wall = Wall(clock, 240)

    def attempt(request: rung.Request) -> str:
        return wall(request) if request.model == "a" else "other"

    outcome = rung.recover_sync(
        attempt, rung.Request(prompt="x", model="a"), clock=clock, jitter=lambda: 0.5,
        policy=rung.policy("call", patience=280, models=["a", "b"]),
    )  # fmt: skip
    assert (outcome.value, outcome.model) == ("other", "b")
    assert clock.now() < wall.ends


def test_after_a_failed_handover_the_first_model_is_waited_for() -> None:
    """If the other model fails, too, the first request after each wait is for the model that was asked for."""
    wall = Wall(FakeClock(), 120)
    outcome = recovered(wall, patience=280, models=["a", "b"])
    assert (outcome.status, outcome.model) == (rung.Status.RECOVERED, "a")
    after = "".join(model for _, model in wall.calls)
    assert re.fullmatch("a{4}b{4}(ab)+a", after)


def test_a_model_that_is_back_first_takes_over() -> None:
    """While the first model is waited for, the other one is tried again after each wait, and serves the call once it is back."""
    clock = FakeClock()
    first, second = Wall(clock, 3_000), Wall(clock, 120)

    def attempt(request: rung.Request) -> str:
        return (first if request.model == "a" else second)(request)

    outcome = rung.recover_sync(
        attempt, rung.Request(prompt="x", model="a"), clock=clock, jitter=lambda: 0.5,
        policy=rung.policy("call", patience=280, models=["a", "b"]),
    )  # fmt: skip
    assert (outcome.status, outcome.model) == (rung.Status.RECOVERED, "b")
    assert clock.now() < second.ends + 60


def test_a_hint_is_kept_and_a_longer_one_than_the_patience_ends_it() -> None:
    """A Retry-After within the patience is waited for, above the cap of retries, too; a longer one ends the run at once."""
    limited = rung.AttemptError("rate limited", status=429, headers={"retry-after": "100"})
    wall = Wall(FakeClock(), 99, limited)
    assert recovered(wall, patience=280).status is rung.Status.RECOVERED
    assert len(wall.calls) == 2
    hours = rung.AttemptError("rate limited", status=429, headers={"retry-after": "7200"})
    wall = Wall(FakeClock(), 7_200, hours)
    outcome = recovered(wall, patience=280)
    assert outcome.status is rung.Status.FAILED
    assert len(wall.calls) == 1
    assert "asked to wait 7200 s" in outcome.reason


def test_a_hint_of_no_time_does_not_ask_without_a_pause() -> None:
    """A service that says "retry after 0 s" and fails at once is asked as seldom as one that says nothing."""
    clock = FakeClock()
    wall = Wall(clock, 200, rung.AttemptError("Overloaded", status=529, retry_after=0.0))
    recovered(wall, patience=300)
    assert len(wall.calls) < 24


@pytest.mark.parametrize(
    "error",
    [
        rung.AttemptError("invalid request", status=400),
        rung.AttemptError("invalid key", status=401),
        rung.AttemptError("You exceeded your current quota", status=429, code="insufficient_quota"),
    ],
)
def test_what_does_not_pass_is_not_waited_for(error: Exception) -> None:
    """A wrong request, a wrong key or an empty account ends at once, whatever the patience."""
    wall = Wall(FakeClock(), 1_000, error)
    assert not recovered(wall, patience=280).ok
    assert wall.clock.now() == wall.calls[0][0]


def test_visible_output_is_not_repeated() -> None:
    """A call whose output was seen is not sent again after a wait, unless it is idempotent."""
    clock = FakeClock()

    def attempt(request: rung.Request) -> str:
        rung.mark_side_effect()
        raise OVERLOADED

    outcome = rung.recover_sync(
        attempt, rung.Request(prompt="x"), policy=rung.policy("call", patience=280), clock=clock
    )
    assert not outcome.ok
    assert "replay is not safe" in outcome.reason


def test_the_deadline_comes_before_the_patience() -> None:
    """The time budget of the incident ends the waiting."""
    wall = Wall(FakeClock(), 10_000)
    started = wall.clock.now()
    assert not recovered(wall, patience=3_600, seconds=60).ok
    assert wall.clock.now() - started <= 60


def test_waits_are_recorded_as_waits() -> None:
    """The journal's events tell a wait from a retry, with the end of the patience; the incident is their fold."""
    events: list[ev.Event] = []
    wall = Wall(FakeClock(), 60)
    outcome = recovered(wall, patience=280, listener=lambda event, _: events.append(event))
    repeats = [e.decision for e in events if isinstance(e, ev.Decided) and isinstance(e.decision, ev.Repeat)]
    waits = [repeat for repeat in repeats if not ev.is_retry(repeat)]
    assert len(waits) >= 3
    assert len({wait.until for wait in waits}) == 1
    incident = Incident.of(outcome.events)
    assert (incident.waits, incident.probes) == (len(waits), len(waits))


def test_levels_keep_their_numbers() -> None:
    """The end of a ladder has the level that the documents give it, with or without a wait below it."""
    for ladder in LADDERS.values():
        patient = ladder.with_waiting(park=0, patience=60)
        assert patient.level(len(patient.rungs) - 1) == ladder.level(len(ladder.rungs) - 1)
        assert patient.rungs[-2].action is Action.WAIT
        assert patient.with_waiting(park=0, patience=0) == ladder


def test_a_policy_reads_back_with_its_patience() -> None:
    """The table of a patient policy is read as the same policy, and patience 0 removes the rung again."""
    policy = rung.policy("call", patience=120)
    assert rung.policy(**policy_table(policy)) == policy
    assert policy.replace(patience=0).ladder == LADDERS["call"]
    assert rung.policy("call", "off", patience=120).ladder.rungs[0].name == "surface"


def test_probes_are_told_from_attempts() -> None:
    """The outcome tells how many of its attempts only looked whether the service is back: all but the first and the retries."""
    wall = Wall(FakeClock(), 90)
    outcome = recovered(wall, ladder="call")
    assert outcome.attempts == len(wall.calls)
    assert outcome.attempts - outcome.probes == 4
    assert outcome.to_dict()["probes"] == outcome.probes > 0


OWN_FAILURES = {
    "model_unavailable": rung.AttemptError("model b does not exist", status=404, code="model_not_found"),
    "auth_error": rung.AttemptError("invalid x-api-key", status=401),
    "quota_exhausted": rung.AttemptError("You exceeded your current quota", status=429, code="insufficient_quota"),
    "permission_denied": rung.AttemptError("not allowed", status=403),
    "invalid_request": rung.AttemptError("invalid request: unknown field", status=400),
}


def beside_broken(
    wall: Wall, kind: str, models: list[str], **settings: Any
) -> tuple[rung.Outcome[str], list[tuple[str, str]]]:
    """Recover a call to model a at a wall; b fails for a reason of its own, other models work. Return the models asked."""
    asked: list[tuple[str, str]] = []

    def attempt(request: rung.Request) -> str:
        asked.append((request.model, request.prompt))
        if request.model == "b":
            raise OWN_FAILURES[kind]
        return wall(request) if request.model == "a" else "other"

    outcome = rung.recover_sync(
        attempt, rung.Request(prompt="x", model="a"), clock=wall.clock, jitter=lambda: 0.5,
        breakers=rung.BreakerRegistry(), retry_budget=rung.RetryBudget(),
        policy=rung.policy(settings.pop("ladder", "call"), models=models, **settings),
    )  # fmt: skip
    return outcome, asked


@pytest.mark.parametrize("ladder", ["task", "call", "model"])
@pytest.mark.parametrize("kind", OWN_FAILURES)
def test_a_broken_fallback_does_not_end_the_waiting(kind: str, ladder: str) -> None:
    """If the other model fails for a reason of its own, it is asked once, and the first one is waited for."""
    outcome, asked = beside_broken(Wall(FakeClock(), 120), kind, ["a", "b"], patience=280, ladder=ladder)
    assert (outcome.status, outcome.model) == (rung.Status.RECOVERED, "a")
    assert [model for model, _ in asked].count("b") == 1
    assert {prompt for _, prompt in asked} == {"x"}


@pytest.mark.parametrize("kind", OWN_FAILURES)
def test_a_model_behind_a_broken_fallback_takes_over(kind: str) -> None:
    """The model after a broken one takes over at once, with the unchanged request."""
    wall = Wall(FakeClock(), 120)
    outcome, asked = beside_broken(wall, kind, ["a", "b", "c"], patience=280)
    assert (outcome.value, outcome.model) == ("other", "c")
    assert wall.clock.now() < wall.ends
    assert asked[-2:] == [("b", "x"), ("c", "x")]


@pytest.mark.parametrize("patience", [0, 100])
@pytest.mark.parametrize("kind", OWN_FAILURES)
def test_the_end_beside_a_broken_fallback_names_the_first_failure(kind: str, patience: float) -> None:
    """The outcome has the failure of the model that was asked for, and says why the other one did not help."""
    outcome, asked = beside_broken(Wall(FakeClock(), 10_000), kind, ["a", "b"], patience=patience)
    assert outcome.status is rung.Status.FAILED
    assert outcome.failure is not None
    assert outcome.failure.kind == "overloaded"
    assert outcome.reason.startswith("overloaded")
    assert f"b failed: {kind}" in outcome.reason
    assert [model for model, _ in asked].count("b") == 1
    assert Incident.of(outcome.events).failure == outcome.failure


def test_a_fallback_with_a_passing_failure_is_still_asked_again_beside_a_broken_one() -> None:
    """After each wait the models that may come back are tried again, and the broken one is not."""
    clock = FakeClock()
    first, third = Wall(clock, 3_000), Wall(clock, 120)
    asked: list[str] = []

    def attempt(request: rung.Request) -> str:
        asked.append(request.model)
        if request.model == "b":
            raise OWN_FAILURES["auth_error"]
        return (first if request.model == "a" else third)(request)

    outcome = rung.recover_sync(
        attempt, rung.Request(prompt="x", model="a"), clock=clock, jitter=lambda: 0.5,
        policy=rung.policy("call", patience=280, models=["a", "b", "c"]),
    )  # fmt: skip
    assert (outcome.status, outcome.model) == (rung.Status.RECOVERED, "c")
    assert asked.count("b") == 1


def test_an_early_escalation_to_a_broken_model_costs_no_retries() -> None:
    """A handover before the retries are used gives the first model its remaining retries back, also without patience."""
    settings: dict[str, Any] = {"patience": 0, "retries": 3, "escalate_after": 1}
    outcome, asked = beside_broken(Wall(FakeClock(), 10_000), "auth_error", ["a", "b"], **settings)
    assert [model for model, _ in asked] == ["a", "a", "b", "a", "a"]
    assert outcome.failure is not None
    assert outcome.failure.kind == "overloaded"
