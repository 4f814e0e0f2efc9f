"""Recoveries with a run id: they go on after a crash, and no attempt that ended is made again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain import events as ev
from rung.core.domain.errors import ConfigError, LeaseLost, RunOwnedElsewhere, StoreUnavailable
from rung.engine.durable.store_retry import RETRY_DELAYS_SECONDS
from rung.store import open_journal
from rung.store.durable_runs import DurableRunStore
from rung.store.journal.journal import Journal
from rung.store.run_lease import DurableRunLease
from rung.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

POLICY = rung.policy("task", models=["small", "large"], attempts=10)


class Died(BaseException):
    """As if the process were gone: nothing after it is done."""


class DyingClaim(DurableRunLease):
    """Writes so many times, then dies."""

    left = 10_000
    dead = False

    def _die(self) -> None:
        type(self).left -= 1
        if type(self).left < 0:
            type(self).dead = True
        if self.dead:
            raise Died

    def record(self, key: str, result: Any) -> None:
        self._die()
        super().record(key, result)

    def append(self, *arguments: Any) -> Any:
        self._die()
        return super().append(*arguments)

    def finish(self, result: Any) -> None:
        self._die()
        super().finish(result)


class World:
    """A journal, a clock, and attempts that fail as planned; each is counted before it does anything."""

    def __init__(self, path: Path, plan: list[Any]) -> None:
        self.journal = open_journal(path / "journal.db")
        self.clock = FakeClock()
        self.plan = plan
        self.made = 0

    def attempt(self, request: rung.Request) -> Any:
        self.made += 1
        step = self.plan[min(self.made, len(self.plan)) - 1]
        if isinstance(step, BaseException):
            raise step
        return step

    def recover(self, **settings: Any) -> rung.Outcome[Any]:
        idempotent = settings.pop("idempotent", True)
        request = rung.Request(prompt="p", model="small", idempotent=idempotent)
        ports = {
            "clock": self.clock,
            "jitter": lambda: 0.0,
            "retry_budget": None,
            "breakers": rung.BreakerRegistry(),
            **settings,
        }
        return rung.durable.recover_sync(
            self.attempt, request, policy=POLICY, journal=self.journal, run_id="r", **ports
        )

    async def arecover(self) -> rung.Outcome[Any]:
        async def attempt(request: rung.Request) -> Any:
            return self.attempt(request)

        request = rung.Request(prompt="p", model="small", idempotent=True)
        return await rung.durable.recover(
            attempt, request, policy=POLICY, journal=self.journal, run_id="r", clock=self.clock, jitter=lambda: 0.0,
            retry_budget=None, breakers=rung.BreakerRegistry(),
        )  # fmt: skip


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Callable[[list[Any]], World]]:
    worlds: list[World] = []

    def make(plan: list[Any]) -> World:
        path = tmp_path / str(len(worlds))
        path.mkdir()
        worlds.append(World(path, plan))
        return worlds[-1]

    yield make
    for one in worlds:
        one.journal.close()


def dying(journal: Journal, left: int) -> None:
    """From now on its claims die after so many writes."""

    class Now(DyingClaim):
        pass

    Now.left = left

    class Dying(DurableRunStore):
        def claim(self, run: str, task: str = "", arguments: Any = None) -> DurableRunLease:
            claim = super().claim(run, task, arguments)
            return Now(self, claim.run, claim.epoch, done=claim.done, exhausted=claim.exhausted)

    journal.__class__ = type("DyingJournal", (Journal,), {"runs": property(lambda self: Dying(self, lease=0.0))})


PLAN: list[Any] = [TimeoutError("one"), FileNotFoundError(2, "two"), TimeoutError("three"), {"answer": 42}]


def test_from_beginning_to_end(world: Callable[[list[Any]], World]) -> None:
    """It recovers as without a run id; called again it says how it ended, and makes no attempt."""
    here = world(PLAN)
    outcome = here.recover()
    again = here.recover()
    assert (outcome.status, outcome.value, outcome.attempts) == ("recovered", {"answer": 42}, 4)
    assert (again.status, again.value, again.attempts, here.made) == ("recovered", {"answer": 42}, 4, 4)
    assert again.events == outcome.events


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("left", range(22))
def test_dead_after_any_write(world: Callable[[list[Any]], World], left: int, asynchronous: bool) -> None:
    """Whichever write is the last: called again it ends the same, and only the attempt under way is made twice."""
    here = world(PLAN)
    dying(here.journal, left)
    died = False
    try:
        outcome = asyncio.run(here.arecover()) if asynchronous else here.recover()
    except Died:
        died = True
        here.journal.flush()
        ((ended,),) = here.journal.read(
            "SELECT count(*) FROM step WHERE key LIKE 'attempt.%' AND key NOT LIKE '%.begun' AND key NOT LIKE '%.report.%'"
        )
        here.plan = [*PLAN[: here.made], *PLAN[ended:]]  # what was cut off comes to the same when it is made again
        dying(here.journal, 10_000)
        outcome = asyncio.run(here.arecover()) if asynchronous else here.recover()
    assert (outcome.status, outcome.value) == ("recovered", {"answer": 42})
    assert here.made in {4, 5} if died else here.made == 4
    cut = [event for event in outcome.events if isinstance(event, ev.AttemptFailed) and event.failure.rule == "cut-off"]
    assert len(cut) <= 1
    assert outcome.attempts == 4 + len(cut)
    assert here.journal.read("SELECT state FROM run") == [("done",)]


@pytest.mark.parametrize(
    ("ask", "status", "made"),
    [
        (None, "partial", 1),
        (lambda *_: "stop", "partial", 1),
        (lambda *_: "retry", "recovered", 2),
        (lambda *_: None, "blocked", 1),
    ],
)
def test_what_may_have_had_effects_is_not_made_again(
    world: Callable[[list[Any]], World], ask: Any, status: str, made: int
) -> None:
    """Cut off in an attempt that is not idempotent: a person decides; without one it ends partial."""
    here = world([Died(), "good"])
    with pytest.raises(Died):
        here.recover(idempotent=False)
    forget_the_end(here.journal)
    settings = {} if ask is None else {"ask": ask}
    outcome = here.recover(idempotent=False, **settings)
    assert (outcome.status, here.made) == (status, made)


def forget_the_end(journal: Journal) -> None:
    """A process that is killed writes no last word: take back what this one could still say, and its lease."""
    journal.flush()

    def work(connection: Any) -> None:
        connection.execute("DELETE FROM event WHERE name = 'cancelled'")
        connection.execute("UPDATE run SET owner = '', lease = 0")

    journal.write(work, lambda _: True).result()
    journal.read_models.clear_cache()


def test_attended_in_the_terms(world: Callable[[list[Any]], World]) -> None:
    """Who was there when it began is not who is there now: the answer counts only where somebody is."""
    here = world([Died(), "good"])
    with pytest.raises(Died):
        here.recover(idempotent=False, ask=lambda *_: "retry")
    forget_the_end(here.journal)
    assert here.recover(idempotent=False, ask=lambda *_: "retry").status == "recovered"


def test_backoff_keeps_its_moment(world: Callable[[list[Any]], World]) -> None:
    """A wait of which half had passed when the process died is waited for the other half."""

    class DyingClock(FakeClock):
        def sleep(self, seconds: float) -> None:
            self.advance(seconds / 2)
            raise Died

    here = world([TimeoutError("x"), "good"])
    here.clock = DyingClock()
    with pytest.raises(Died):
        here.recover(jitter=lambda: 1.0)
    forget_the_end(here.journal)
    passed = here.clock.now()
    here.clock = FakeClock(passed)
    outcome = here.recover(jitter=lambda: 1.0)
    decided = next(event for event in outcome.events if isinstance(event, ev.Decided))
    assert isinstance(decided.decision, ev.Repeat)
    assert here.clock.now() == pytest.approx(decided.at + decided.decision.wait)


def test_taken_up_too_often(world: Callable[[list[Any]], World]) -> None:
    """A run that kills whoever takes it up, three times without a step, ends partial."""
    here = world(["good"])
    for _ in range(3):
        dying(here.journal, 0)
        with pytest.raises(Died):
            here.recover()
    dying(here.journal, 10_000)
    outcome = here.recover()
    assert (outcome.status, here.made) == ("partial", 0)
    assert "three times" in outcome.reason
    assert here.recover().status == "partial"


def test_one_owner(world: Callable[[list[Any]], World]) -> None:
    """While it is worked on, nobody else gets it; a former owner's word is refused."""
    here = world(["good"])
    claim = here.journal.runs.claim("r")
    with pytest.raises(RunOwnedElsewhere, match="already runs it"):
        here.recover()
    late = DurableRunStore(here.journal, now=lambda: 1e12).claim("r")
    assert late.epoch == claim.epoch + 1
    words: list[Callable[[], None]] = [
        lambda: claim.record("x", 1),
        lambda: claim.finish({}),
        claim.release,
        claim.renew,
    ]
    for word in words:
        with pytest.raises(LeaseLost):
            word()
    with pytest.raises(LeaseLost):
        claim.append("r", 0, [ev.Opened(0.0, "r", ev.IncidentContext("task", "x"))]).result()
    assert here.journal.events("r") == []


@pytest.mark.parametrize(
    ("ports", "key"),
    [
        ({"run_id": "", "journal": None}, "run_id"),
        ({"run_id": 5, "journal": None}, "run_id"),
        ({"run_id": "x", "journal": None}, "journal"),
        ({"run_id": "x", "journal": 5}, "journal"),
    ],
)
def test_bad_input(ports: dict[str, Any], key: str) -> None:
    """A run id needs a name and a journal that has runs."""
    with pytest.raises(ConfigError) as caught:
        rung.durable.recover_sync(lambda _: 1, "p", **ports)
    assert caught.value.key == key


def test_results_are_json(world: Callable[[list[Any]], World]) -> None:
    """A result that another process could not be given is given to this caller alone, and that is said."""
    here = world([object()])
    with pytest.warns(RuntimeWarning, match="not recorded"):
        outcome = here.recover()
    assert outcome.value is here.plan[0]
    assert (here.recover().value, here.made) == (None, 1)


def test_awaiting_a_run_that_has_ended(world: Callable[[list[Any]], World]) -> None:
    """The other loop, too, is told how it ended."""
    here = world(["good"])
    asyncio.run(here.arecover())
    assert (asyncio.run(here.arecover()).value, here.made) == ("good", 1)


def test_a_failure_nobody_decided_about(world: Callable[[list[Any]], World]) -> None:
    """A failure that was written down without a decision is decided about now."""
    here = world([TimeoutError("x"), "good"])
    dying(here.journal, 4)
    with pytest.raises(Died):
        here.recover()
    here.journal.flush()
    here.journal.write(
        lambda connection: connection.execute("DELETE FROM event WHERE name = 'decided'"), lambda _: True
    ).result()
    here.journal.read_models.clear_cache()
    dying(here.journal, 10_000)
    outcome = here.recover()
    assert (outcome.status, outcome.attempts, here.made) == ("recovered", 2, 2)


def test_taken_up_too_often_forgets_nothing(world: Callable[[list[Any]], World]) -> None:
    """Given up after an attempt that had ended, or was cut off: it is counted all the same."""
    for left, made, attempts in ((3, 1, 2), (2, 1, 1)):  # its result was kept; only its beginning was
        here = world([TimeoutError("x"), "good"])
        dying(here.journal, left)
        with pytest.raises(Died):
            here.recover()
        for _ in range(3):
            here.journal.flush()
            dying(here.journal, 0)
            with pytest.raises(Died):
                here.recover()
        assert here.made == made
        dying(here.journal, 10_000)
        outcome = here.recover()
        assert (outcome.attempts, outcome.status) == (attempts, "recovered" if left == 3 else "partial")


def test_an_answer_is_obeyed_only_when_that_is_written_down(world: Callable[[list[Any]], World]) -> None:
    """Answered before the crash, and not yet acted on: what follows from the answer is a decision like any other."""
    here = world([Died(), "good"])
    with pytest.raises(Died):
        here.recover(idempotent=False)
    forget_the_end(here.journal)
    dying(here.journal, 1)  # the question is written down, and no more
    with pytest.raises(Died):
        here.recover(idempotent=False, ask=lambda *_: "retry")
    here.journal.flush()
    kept = here.journal.events("r")
    here.journal.append("r", len(kept), [ev.Answered(kept[-1].at, "retry")]).result()
    dying(here.journal, 10_000)
    asked: list[Any] = []
    outcome = here.recover(idempotent=False, ask=lambda *question: asked.append(question))
    assert (outcome.status, asked, here.made) == ("recovered", [], 2)
    kept = here.journal.events("r")
    place = next(n for n, event in enumerate(kept) if isinstance(event, ev.Answered))
    decided = kept[place + 1]
    assert isinstance(decided, ev.Decided)
    assert decided.decision == ev.Repeat(0, 0.0, "a person chose")
    assert kept == list(outcome.events)


def test_hints(world: Callable[[list[Any]], World]) -> None:
    """A run with an id learns from the journal as any other does."""

    class Remembering(Journal):
        def suggest_rung(self, project: str, failure: rung.Failure) -> str:
            return "replan"

    here = world([FileNotFoundError(2, "x"), "good"])
    here.journal.__class__ = Remembering
    policy = POLICY.replace(learn=True)
    outcome = rung.durable.recover_sync(
        here.attempt, "p", policy=policy, journal=here.journal, run_id="r", breakers=rung.BreakerRegistry()
    )
    assert outcome.path == (3,)
    (hinted,) = [event for event in outcome.events if isinstance(event, ev.Hinted)]
    assert hinted.reason == "replan worked last time"


class Full(DurableRunLease):
    """A store that is in trouble so often, when it is to keep a step or an end."""

    times = 0

    def _busy(self) -> None:
        type(self).times -= 1
        if type(self).times >= 0:
            raise StoreUnavailable("the disk is full")

    def record(self, key: str, result: Any) -> None:
        self._busy()
        super().record(key, result)

    def finish(self, result: Any) -> None:
        self._busy()
        super().finish(result)


def full(journal: Journal, times: int) -> None:
    class Now(Full):
        pass

    Now.times = times

    class Filling(DurableRunStore):
        def claim(self, run: str, task: str = "", arguments: Any = None) -> DurableRunLease:
            claim = super().claim(run, task, arguments)
            return Now(self, claim.run, claim.epoch, done=claim.done, exhausted=claim.exhausted)

    journal.__class__ = type("FullJournal", (Journal,), {"runs": property(Filling)})


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_store_in_trouble_is_waited_for(world: Callable[[list[Any]], World], asynchronous: bool) -> None:
    """A disk that is full for a while costs time, and no attempt."""
    here = world(["good"])
    full(here.journal, len(RETRY_DELAYS_SECONDS))
    began = here.clock.now()
    outcome = asyncio.run(here.arecover()) if asynchronous else here.recover()
    assert (outcome.status, outcome.attempts, here.made) == ("succeeded", 1, 1)
    assert here.clock.now() - began == pytest.approx(sum(RETRY_DELAYS_SECONDS))
    assert here.journal.read("SELECT state FROM run") == [("done",)]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_store_in_trouble_for_good(world: Callable[[list[Any]], World], asynchronous: bool) -> None:
    """A disk that stays full: the work goes on, nothing is made twice, and the user is told."""
    here = world(["good"])
    full(here.journal, 1_000)
    with pytest.warns(RuntimeWarning, match="journal failed and was ignored: StoreUnavailable: the disk is full"):
        outcome = asyncio.run(here.arecover()) if asynchronous else here.recover()
    assert (outcome.status, outcome.value, here.made) == ("succeeded", "good", 1)


def test_a_limit_does_not_cut_keeping_short(world: Callable[[list[Any]], World]) -> None:
    """A result that came in time is kept, however long that takes: it is not made again."""
    here = world(["good"])
    full(here.journal, 3)
    policy = POLICY.replace(attempt_seconds=0.2)
    outcome = rung.durable.recover_sync(
        here.attempt, "p", policy=policy, journal=here.journal, run_id="r", breakers=rung.BreakerRegistry()
    )
    assert (outcome.status, here.made) == ("succeeded", 1)
