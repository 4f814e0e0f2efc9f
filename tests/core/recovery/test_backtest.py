"""Backtest: a replay matches the recording while decisions are equal, and reports unknown results as unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rung
from rung.core.domain import events as ev
from rung.core.domain.errors import AttemptTimeout
from rung.core.domain.incident import Incident
from rung.core.policy.parser import parse_ladder
from rung.core.policy.parser import policy as make
from rung.core.recovery.backtest import replay, summarize
from rung.core.recovery.limits import seconds_left
from rung.core.recovery.resume_point import decide_after_process_death, process_death_failure
from rung.engine.loop.run import CURRENT
from rung.testing import FakeClock, HttpError, Script
from tests.properties.test_recovery import World, cases, many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.policy.policy import Policy

REQUEST = rung.Request(prompt="do it", model="small")
BUSY = HttpError(529, "overloaded")
WRONG = rung.AttemptError("wrong", finding="malformed_output")
LOST = rung.AttemptError("lost", finding="not_found")


class Remembering:
    """A journal that keeps nothing, and remembers which rung helped before."""

    project = ""

    def __init__(self, rung: str) -> None:
        self.rung = rung

    def append(self, incident: str, position: int, events: Sequence[ev.Event]) -> None:
        """Forget the events."""

    def suggest_rung(self, *_: object) -> str:
        """Return the rung, whatever the failure."""
        return self.rung


def recorded(policy: Policy, *script: Any, seconds: float = 2.0, dollars: float = 0.1, **ports: Any) -> Any:
    """The events of a recovery in which every attempt takes so long and costs so much."""
    clock = ports.setdefault("clock", FakeClock())
    play = Script(*script)

    def attempt(request: rung.Request) -> Any:
        clock.advance(seconds)
        rung.report_cost(dollars)
        return play(request)

    quiet = {"breakers": rung.BreakerRegistry(), "retry_budget": None, "jitter": lambda: 0.5}
    return rung.recover_sync(attempt, REQUEST, policy=policy, **{**quiet, **ports}).events


def task(**settings: Any) -> Policy:
    return make("task", report="", **settings)


def test_the_same_policy_is_the_same() -> None:
    """Under the policy it was recorded under nothing differs: attempts, time, cost and end are those recorded."""
    found = replay(recorded(task(), BUSY, BUSY, "done"), task())
    assert (found.is_same, found.is_known, found.describe()) == (True, True, "the same")
    assert (found.attempts, found.status) == (found.was_attempts, found.was_status) == (3, "recovered")
    assert found.seconds == pytest.approx(found.was_seconds)
    assert found.dollars == pytest.approx(found.was_dollars) == pytest.approx(0.3)


def test_it_would_have_stopped() -> None:
    """A policy that stops earlier is known to the end: fewer attempts, less time, less money, and how it ends."""
    found = replay(recorded(task(), BUSY, BUSY, BUSY, "done"), task(attempts=2))
    assert found.point is not None
    assert (found.point.attempt, found.point.stops, found.point.goes_on) == (2, True, False)
    assert (found.attempts, found.was_attempts) == (2, 4)
    assert (found.status, found.was_status) == ("partial", "recovered")
    assert found.is_known
    assert found.dollars == pytest.approx(0.2)
    assert found.seconds == pytest.approx(2 + 0.5 + 2)
    assert found.point.recorded == "retried after 1.0 s"
    assert found.describe() == (
        "would have stopped (partial: the budget of 2 attempts is spent; last error: overloaded: overloaded) after attempt 2: "
        "2 attempts fewer, partial instead of recovered"
    )


def test_one_attempt_fewer_is_one() -> None:
    """One is said as one."""
    found = replay(recorded(task(), BUSY, BUSY, "done"), task(attempts=2))
    assert ": 1 attempt fewer, " in found.describe()


def test_it_would_have_ended_otherwise() -> None:
    """Where both stop, and only the end has another name, there are as many attempts."""
    surfaced = make("call", report="", attempts=2)
    found = replay(recorded(task(attempts=2), BUSY, BUSY), surfaced)
    assert (found.attempts, found.status, found.was_status) == (2, "failed", "partial")
    assert found.describe().endswith("after attempt 2: as many attempts, failed instead of partial")


def test_it_would_have_handed_over() -> None:
    """A hand-over that was never made has no known outcome."""
    found = replay(recorded(task(), BUSY, BUSY, "done"), task(retries=1, models=["small", "large"]))
    assert found.point is not None
    assert found.describe() == "would have handed over to large after attempt 2: outcome unknown"
    assert (found.status, found.is_known, found.point.stops, found.point.goes_on) == (None, False, False, False)
    by_agent = replay(recorded(task(), BUSY, BUSY, "done"), task(retries=1, agents=["expert"]))
    assert "handed over to small, expert after" in by_agent.describe()


def test_it_would_have_gone_on() -> None:
    """Where the recorded one ended and this one would not have, there is at least one attempt more, of unknown end."""
    found = replay(recorded(task(attempts=2), BUSY), task())
    assert found.point is not None
    assert found.point.goes_on
    assert found.describe() == "would have retried after 1.0 s after attempt 2: outcome unknown"
    assert (
        found.point.recorded
        == "stopped (partial: the budget of 2 attempts is spent; last error: overloaded: overloaded)"
    )


def test_it_would_have_changed_the_request() -> None:
    """Another action than the recorded one is another way."""
    found = replay(
        recorded(task(retry=["malformed_output"]), WRONG, "done"), make("pipeline", retry=["timeout"], report="")
    )
    assert found.is_same  # both say what was wrong with it
    found = replay(recorded(task(), LOST, "done"), make("crew", report=""))
    assert found.describe() == "would have changed the request (fix) after attempt 1: outcome unknown"


def test_it_would_have_asked() -> None:
    """Leave that was not asked for is another way; whoever was there then is taken to be there."""
    two = {"models": ["small", "large"], "escalate_after": 0}
    events = recorded(task(**two), BUSY, "done", ask=lambda *_: "approve")
    found = replay(events, task(**two, confirm="always"))
    assert found.describe().startswith("would have asked a person (overloaded: hand over from small to large")
    hard = recorded(
        task(**two), rung.AttemptError("hard", finding="capability_mismatch"), "done", ask=lambda *_: "approve"
    )
    alone = replay(hard, task(**two, confirm="always", unattended=True))
    assert alone.status == "blocked"


@pytest.mark.parametrize("answer", ["approve", "decline", "stop", None])
def test_answers_are_taken_as_given(answer: str | None) -> None:
    """A person's answer, or that there was none, is a fact of the record, and no policy's doing."""
    policy = task(models=["small", "large", "huge"], escalate_after=0, confirm="always")
    events = recorded(policy, BUSY, BUSY, "done", ask=lambda *_: answer)
    assert any(isinstance(event, ev.Decided) and isinstance(event.decision, ev.Ask) for event in events)
    found = replay(events, policy)
    assert (found.is_same, found.status) == (True, found.was_status)


def test_a_question_with_other_options_is_another_question() -> None:
    """What a person was not offered, the answer does not tell."""
    events = recorded(make("call", attempts=None, report=""), LOST, "done", ask=lambda *_: "retry")
    assert replay(events, make("call", attempts=None)).is_same
    found = replay(events, make("call", attempts=None, models=["small", "large"]))
    assert (
        found.describe()
        == "would have asked a person (After 1 attempt: not_found: lost. What should be done?) after attempt 1: outcome unknown"
    )


def test_other_waits() -> None:
    """A wait that chance does not explain is said, moves what comes after it, and counts in the time."""
    exact = task(backoff={"base": 1, "jitter": False})
    longer = task(backoff={"base": 4, "jitter": False})
    found = replay(recorded(exact, BUSY, BUSY, "done"), longer)
    assert found.is_same
    assert found.waits == ((1.0, 4.0), (2.0, 8.0))
    assert found.seconds == pytest.approx(found.was_seconds + 9)
    assert found.describe() == "would have waited 4.0 s instead of 1.0 s; would have waited 8.0 s instead of 2.0 s"


def test_longer_waits_may_use_up_the_time() -> None:
    """What comes later because of a wait may come too late for the next."""
    exact = task(backoff={"base": 1, "jitter": False})
    slow = task(backoff={"base": 15, "jitter": False}, patience=0)
    found = replay(recorded(exact, BUSY, BUSY, BUSY, "done"), slow)
    assert found.waits == ((1.0, 15.0),)
    assert found.describe().endswith("after attempt 2: 2 attempts fewer, partial instead of recovered")
    found = replay(recorded(exact, BUSY, BUSY, "done"), task(seconds=6, backoff={"base": 1.5, "jitter": False}))
    assert found.attempts == 2


def test_waits_drawn_by_chance() -> None:
    """A wait this policy could have drawn is no difference, and the time is taken at the average."""
    found = replay(recorded(task(), BUSY, "done", jitter=lambda: 0.9), task())
    assert found.waits == ()
    assert found.seconds == pytest.approx(found.was_seconds - 0.4)
    found = replay(recorded(task(), BUSY, "done", jitter=lambda: 0.9), task(backoff={"base": 4}))
    assert found.waits == ()
    assert found.seconds == pytest.approx(found.was_seconds + 2 - 0.9)


@pytest.mark.parametrize("chance", [0.0, 0.1, 0.9, 1.0])
def test_chance_decides_and_is_not_held_against_a_policy(chance: float) -> None:
    """Where a long wait would not have fitted and a short one did, or the other way round, it is the same."""
    tight = task(backoff={"base": 4}, seconds=4.0)
    events = recorded(tight, BUSY, "done", jitter=lambda: chance)
    repeated = next(event for event in events if isinstance(event, ev.Decided)).decision
    assert isinstance(repeated, ev.Repeat) == (chance < 0.5)
    assert replay(events, tight).is_same


def test_rungs_are_known_by_name() -> None:
    """A ladder with the same rungs in other places decides the same, and a skipped rung is skipped there."""
    rungs = [{"action": "nudge"}, {"action": "replan"}, {"action": "surface"}]
    one = make(parse_ladder({"rungs": rungs}), report="")
    other = make(parse_ladder({"rungs": [{"action": "fix", "tries": 0}, *rungs]}), report="")
    broken = {"nudge": lambda *_: 1 / 0}
    events = recorded(one, LOST, "done", rung_handlers=broken)
    assert any(isinstance(event, ev.Skipped) for event in events)
    assert replay(events, one).is_same
    assert replay(events, other).is_same


def test_a_record_without_the_names_of_its_rungs() -> None:
    """An old record, or a short call's, may not name its rungs: then sorts of decisions have to do."""
    opened, *rest = recorded(task(), BUSY, "done")
    nameless = [opened._replace(terms=opened.terms._replace(rungs=())), *rest]
    assert replay(nameless, task()).is_same


def test_what_was_remembered() -> None:
    """A hint that was taken is taken again under a policy that learns, and by another it is not."""
    journal = Remembering("replan")
    events = recorded(task(learn=True), LOST, "done", journal=journal)
    assert replay(events, task(learn=True)).is_same
    found = replay(events, task())
    assert found.describe() == "would have changed the request (nudge) after attempt 1: outcome unknown"


def test_a_process_that_died() -> None:
    """What follows from a dead process is no policy's choice, unless this one could not have asked."""
    events = list(recorded(task(), LOST, "done", ask=lambda *_: "stop")[:1])
    incident = Incident.of(events)
    events.append(ev.AttemptFailed(2e6, process_death_failure(incident), 1.0, 0.0, may_retry=True))
    events[0] = events[0]._replace(deadline=None)
    events.append(ev.Decided(2e6, decide_after_process_death(incident, task(), 1e6)))
    policy = task(seconds=None)
    assert replay(events, policy).is_same
    found = replay(events, policy.replace(unattended=True))
    assert (found.status, found.was_status) == ("partial", None)
    assert found.describe().endswith("as many attempts, partial instead of open")


def test_an_outer_incidents_limits_hold() -> None:
    """Inside another incident what was felt of its limits still holds, whatever this policy would allow."""
    outer: list[Any] = []
    clock = FakeClock()

    def attempt(_: rung.Request) -> str:
        outer.append(recorded(task(), BUSY, seconds=5, clock=clock))
        return "done"

    rung.recover_sync(attempt, REQUEST, policy=task(seconds=12, dollars=1.0), clock=clock, retry_budget=None)
    (events,) = outer
    assert events[0].parent
    assert replay(events, task()).is_same
    assert replay(events, task(seconds=None)).is_same
    free = [events[0]._replace(parent=""), *events[1:]]
    assert not replay(free, task()).is_same
    unlimited = events[0]._replace(deadline=None, dollars=None)
    assert replay([unlimited, *events[1:]], task(seconds=None)).point is not None


def test_an_attempt_that_takes_longer_than_allowed() -> None:
    """A recorded attempt that this policy would have ended leaves a doubt, and nothing is known for certain."""
    found = replay(recorded(task(), BUSY, "done", seconds=20), task(attempt_seconds=10))
    assert found.is_same
    assert not found.is_known
    assert found.doubts == (
        "attempt 1 took 20 s, and would have timed out after 10 s",
        "attempt 2 took 20 s, and would have timed out after 10 s",
    )
    assert found.describe() == "; ".join(found.doubts)


@pytest.mark.parametrize("name", ["rung.errors.AttemptTimeout", "rung.TimeUp"])
def test_an_attempt_that_was_ended(name: str) -> None:
    """One that was ended would have had longer under another policy; under the same it leaves no doubt.

    Older journals have the class's former name.
    """
    short = task(attempt_seconds=20, retries=5)
    opened, ended, *rest = recorded(short, AttemptTimeout(20), "done", seconds=20)
    assert isinstance(ended, ev.AttemptFailed)
    evidence = ended.failure.evidence._replace(exceptions=(name, "TimeoutError"))
    events = [opened, ended._replace(failure=ended.failure._replace(evidence=evidence)), *rest]
    assert replay(events, short).is_known
    for limit in (25, None):
        found = replay(events, short.replace(attempt_seconds=limit, budget=rung.policies.Budget(seconds=None)))
        assert found.doubts == ("attempt 1 timed out after 20 s, and would have had longer",)


def test_an_attempt_that_was_refused() -> None:
    """An open circuit is a fact of the record: an attempt that was not made cannot have taken too long."""
    opened, failed, *rest = recorded(task(), BUSY, "done", seconds=20)
    events = [opened, failed._replace(made=False), *rest]
    found = replay(events, task(attempt_seconds=10))
    assert found.doubts == ("attempt 1 took 20 s, and would have timed out after 10 s",)


def test_a_success_at_once() -> None:
    """Where nothing failed there was nothing to decide."""
    assert replay(recorded(task(), "done"), task(attempts=1)).is_same


def test_summary() -> None:
    """Many together: how many are the same, fewer, more or unknown, and what is saved among the known."""
    cautious = task(attempts=2)
    events = [
        recorded(task(), BUSY, "done"),  # the same
        recorded(task(), BUSY, BUSY, BUSY, "done"),  # stopped after 2
        recorded(task(attempts=1), BUSY),  # would have gone on
        recorded(task(), LOST, "done", seconds=4000),  # in doubt
    ]
    results = [replay(each, cautious) for each in events]
    total = summarize(results)
    assert (total.incidents, total.same, total.fewer, total.otherwise) == (4, 1, 1, 0)
    assert (total.more, total.unknown, total.good_lost) == (1, 2, 1)
    assert total.attempts_saved == 2
    assert total.dollars_saved == pytest.approx(0.2)
    assert total.seconds_saved == pytest.approx(1 + 2 + 2 + 2)
    other_end = replay(recorded(task(attempts=2), BUSY), make("call", attempts=2))
    assert summarize([other_end]).otherwise == 1
    nothing = summarize([])
    assert (nothing.incidents, nothing.same, nothing.seconds_saved) == (0, 0, 0)


class Honest(World):
    """A world whose attempts are ended when their time is up, with a journal that remembers a rung."""

    hint = ""
    journal: Remembering | None = None

    def attempt(self, request: rung.Request) -> str:
        run = CURRENT.get()
        assert run is not None
        limit = seconds_left(run.incident, run.policy, run.began)
        number = min(len(self.starts), len(self.script) - 1)
        if limit is not None and self.script[number][1] > limit:
            self.starts.append(self.clock.now())
            self.clock.advance(limit)
            raise AttemptTimeout(limit)
        return super().attempt(request)

    def record(self, policy: Policy) -> rung.Outcome[str]:
        return rung.recover_sync(
            self.attempt,
            rung.Request(prompt="task", model="small", messages=({"role": "tool", "content": "x" * 99},) * 6),
            policy=policy,
            clock=self.clock,
            jitter=self.jitter,
            breakers=rung.BreakerRegistry(),
            retry_budget=rung.RetryBudget(),
            ask=self.ask if self.answers else None,
            journal=self.journal or Remembering(self.hint),
        )


RECORDED = {name: case for name, case in cases.items() if name != "mode"}


@pytest.mark.uncovered
@many(500)
@given(**RECORDED, hint=st.none() | st.integers(0, 6))
def test_under_the_very_same_policy_it_is_always_the_same(
    policy: Policy, script: list[Any], answers: list[str], mends: bool, hint: int | None
) -> None:
    """Whatever happened, and whatever chance and people said: the policy it happened under does the same."""
    world = Honest(script, answers, mends=mends)
    if hint is not None:
        world.hint = policy.ladder.rungs[hint % len(policy.ladder.rungs)].name
        policy = policy.replace(learn=True)
    outcome = world.record(policy)
    found = replay(outcome.events, policy)
    assert found.is_same, found.describe()
    assert found.waits == ()
    assert (found.attempts, found.dollars, found.status) == (outcome.attempts, outcome.dollars, outcome.status)
    assert found.is_known, found.describe()


@pytest.mark.uncovered
@many(200)
@given(**RECORDED, other=cases["policy"])
def test_under_any_other_policy_no_more_is_said_than_is_known(
    policy: Policy, script: list[Any], answers: list[str], mends: bool, other: Policy
) -> None:
    """No attempt is made up: there are at most those recorded, and an end is told only where it is seen or decided."""
    outcome = Honest(script, answers, mends=mends).record(policy)
    found = replay(outcome.events, other)
    assert found.attempts <= outcome.attempts
    assert found.dollars <= outcome.dollars + 1e-9
    assert (found.status is None) == (found.point is not None and not found.point.stops)
    assert found.describe()
