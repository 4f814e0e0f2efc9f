"""A recovery inside an attempt of another: part of it in its limits, its money and its failure."""

from __future__ import annotations

import asyncio
import threading
import time
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain import events as ev
from rung.core.domain.failures import Kind
from rung.engine.gather import GatherJob
from rung.testing import FakeClock, HttpError, Script

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.domain.incident import Incident

FAST = rung.policy("call", patience=0, backoff={"base": 0})


class Nest:
    """An outer recovery whose attempt makes an inner one, in one of the two modes."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.clock = FakeClock()
        self.inner: list[rung.Outcome[Any]] = []

    def ports(self, **ports: Any) -> dict[str, Any]:
        shared = {"clock": self.clock, "breakers": rung.BreakerRegistry(), "retry_budget": rung.RetryBudget()}
        return {"policy": FAST, **shared, **ports}

    def recover(self, attempt: Any, request: Any = "outer", **ports: Any) -> rung.Outcome[Any]:
        """The outer recovery."""
        if self.mode == "sync":
            return rung.recover_sync(attempt, request, **self.ports(**ports))
        return asyncio.run(rung.recover(attempt, request, **self.ports(**ports)))

    def within(self, inner: Any, *, then: Callable[[rung.Request], Any] = lambda _: None, **ports: Any) -> Any:
        """An attempt that does this, then makes the inner recovery and passes on what came of it."""

        def attempt(request: rung.Request) -> Any:
            then(request)
            outcome = rung.recover_sync(inner, request.replace(prompt="inner"), **self.ports(**ports))
            self.inner.append(outcome)
            return outcome.unwrap()

        async def aattempt(request: rung.Request) -> Any:
            then(request)
            work = inner.attempt if isinstance(inner, Script) else inner
            outcome = await rung.recover(work, request.replace(prompt="inner"), **self.ports(**ports))
            self.inner.append(outcome)
            return outcome.unwrap()

        return attempt if self.mode == "sync" else aattempt

    def opened(self, index: int = -1) -> ev.Opened:
        event = self.inner[index].events[0]
        assert isinstance(event, ev.Opened)
        return event


@pytest.fixture(params=["sync", "async"])
def nest(request: pytest.FixtureRequest) -> Nest:
    return Nest(request.param)


def test_exhaustion_is_one_failure(nest: Nest) -> None:
    """What the inner ladder has tried in vain is the outer one's failure, and is not repeated again."""
    script = Script(ConnectionError("down"))
    outcome = nest.recover(nest.within(script))
    assert len(script.requests) == 4
    assert outcome.status is rung.Status.FAILED
    assert outcome.attempts == 1
    assert outcome.failure is not None
    assert outcome.failure.kind is Kind.NETWORK
    assert outcome.failure.evidence.spent
    assert not outcome.failure.retryable
    assert len(nest.inner) == 1


def test_the_outer_ladder_climbs(nest: Nest) -> None:
    """What the inner ladder could not mend, a higher rung of the outer one may."""

    def attempt(request: rung.Request) -> str:
        if request.model == "small":
            raise ConnectionError("down")
        return "good"

    policy = FAST.replace(models=(rung.policies.Model(name="small"), rung.policies.Model(name="large")))
    outcome = nest.recover(nest.within(attempt), rung.Request(prompt="outer", model="small"), policy=policy)
    assert outcome.value == "good"
    assert outcome.attempts == 2
    assert [inner.status.value for inner in nest.inner] == ["failed", "succeeded"]
    assert [inner.attempts for inner in nest.inner] == [4, 1]


def test_a_failure_of_the_outer_attempt_itself(nest: Nest) -> None:
    """The outer attempt's own blip is repeated by the outer ladder, inner recovery and all."""
    failures = iter([ConnectionError(), None])

    def blip(_: rung.Request) -> None:
        error = next(failures)
        if error is not None:
            raise error

    outcome = nest.recover(nest.within(Script("good"), then=blip))
    assert outcome.value == "good"
    assert outcome.attempts == 2


def test_the_parent_is_recorded(nest: Nest) -> None:
    """An inner recovery says which one it is part of; the outermost says none."""
    outcome = nest.recover(nest.within(Script("good")))
    opened = outcome.events[0]
    assert isinstance(opened, ev.Opened)
    assert opened.parent == ""
    assert nest.opened().parent == outcome.id
    assert nest.inner[0].id != outcome.id


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [(100.0, 300.0, 100.0), (100.0, 40.0, 47.0), (None, 40.0, 47.0), (100.0, None, 100.0), (None, None, None)],
)
def test_the_deadline(nest: Nest, outer: float | None, inner: float | None, expected: float | None) -> None:
    """The inner recovery must end by the outer one's deadline, or by its own where that is sooner."""
    began = nest.clock.now()
    attempt = nest.within(
        Script("good"),
        then=lambda _: nest.clock.advance(7),
        policy=rung.policy("call", seconds=inner),
    )
    nest.recover(attempt, policy=rung.policy("call", seconds=outer))
    deadline = nest.opened().deadline
    assert deadline == (None if expected is None else began + expected)


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [(2.0, 9.0, 1.25), (2.0, 1.0, 1.0), (None, 1.0, 1.0), (2.0, None, 1.25), (0.5, 9.0, 0.0)],
)
def test_the_money(nest: Nest, outer: float | None, inner: float | None, expected: float | None) -> None:
    """The inner recovery may spend what is left of the outer one's money, or its own where that is less."""
    attempt = nest.within(
        Script("good"), then=lambda _: rung.report_cost(0.75), policy=rung.policy("call", dollars=inner)
    )
    nest.recover(attempt, policy=rung.policy("call", dollars=outer))
    assert nest.opened().dollars == expected


def test_money_of_earlier_attempts(nest: Nest) -> None:
    """What earlier attempts of the outer recovery cost is no longer there for the inner one."""
    failures = iter([ConnectionError(), None])

    def pay(_: rung.Request) -> None:
        rung.report_cost(0.5)
        error = next(failures)
        if error is not None:
            raise error

    policy = rung.policy("call", backoff={"base": 0}, dollars=2.0)
    outcome = nest.recover(nest.within(Script("good"), then=pay), policy=policy)
    assert nest.opened().dollars == 1.0
    assert outcome.dollars == 1.0


def test_what_the_inner_one_spends(nest: Nest) -> None:
    """Money spent inside counts outside: in the outcome, and against the outer cap."""

    def attempt(_: rung.Request) -> None:
        rung.report_cost(0.5)
        raise ConnectionError

    outcome = nest.recover(nest.within(attempt), policy=rung.policy("call", backoff={"base": 0}, dollars=1.5))
    assert nest.inner[0].dollars == 1.5
    assert nest.inner[0].attempts == 3
    assert "the budget of $1.50 is spent" in nest.inner[0].reason
    assert outcome.dollars == 1.5
    assert "the budget of $1.50 is spent" in outcome.reason


def test_afterwards_the_outer_one_is_at_work_again(nest: Nest) -> None:
    """What an attempt reports after its inner recovery has ended belongs to the outer one."""

    def attempt(request: rung.Request) -> str:
        rung.report_step("before")
        outcome = rung.recover_sync(inner, request, **nest.ports())
        rung.report_step("after")
        steps.append(outcome.steps)
        return "good"

    async def aattempt(request: rung.Request) -> str:
        rung.report_step("before")
        outcome = await rung.recover(inner, request, **nest.ports())
        rung.report_step("after")
        steps.append(outcome.steps)
        return "good"

    def inner(_: rung.Request) -> str:
        rung.report_step("inside")
        return "good"

    steps: list[tuple[str, ...]] = []
    outcome = nest.recover(attempt if nest.mode == "sync" else aattempt)
    assert outcome.steps == ("before", "after")
    assert steps == [("inside",)]


def test_a_guarded_function_inside(nest: Nest) -> None:
    """A guarded function called inside an attempt is part of that recovery, though it has a short way."""

    def attempt() -> None:
        rung.report_cost(0.25)
        raise ConnectionError

    async def aattempt() -> None:
        attempt()

    wrap = rung.guarded(FAST, breakers=rung.BreakerRegistry(), retry_budget=None)
    guarded: Any = wrap(attempt if nest.mode == "sync" else aattempt)

    async def aouter(_: rung.Request) -> None:
        await guarded()

    def outer(_: rung.Request) -> None:
        guarded()

    for _ in range(2):  # a plain function goes the short way from its second call on
        outcome = nest.recover(outer if nest.mode == "sync" else aouter)
        assert outcome.error is not None
        inner = outcome.error.__dict__["__rung_outcome__"]
        opened = inner.events[0]
        assert opened.parent == outcome.id
        assert outcome.attempts == 1
        assert inner.attempts == 4
        assert outcome.dollars == 1.0
        assert opened.deadline - opened.at <= 600  # on its own clock, however far that is from the outer one's


def test_a_guarded_function_outside() -> None:
    """A recovery inside a guarded function that was called on the short way has no parent, and fails once."""
    made: list[rung.Outcome[Any]] = []

    @rung.guarded(FAST, breakers=rung.BreakerRegistry(), retry_budget=None)
    def outer(*, fail: bool) -> None:
        if fail:
            nest = Nest("sync")
            made.append(rung.recover_sync(Script(ConnectionError()), "inner", **nest.ports()))
            made[-1].unwrap()

    outer(fail=False)
    with pytest.raises(ConnectionError) as caught:
        outer(fail=True)
    assert len(made) == 1
    assert made[0].attempts == 4
    outcome = caught.value.__dict__["__rung_outcome__"]
    assert outcome.attempts == 1
    opened = made[0].events[0]
    assert isinstance(opened, ev.Opened)
    assert opened.parent == ""


# Inner recoveries elsewhere than in the attempt's own task or thread.


def test_fanned_out(nest: Nest) -> None:
    """Recoveries fanned out in an attempt, in tasks or in threads, are part of it, each of them."""

    def pay(_: rung.Request) -> str:
        rung.report_cost(0.25)
        return "good"

    jobs = [GatherJob(pay, rung.Request(prompt=f"job {n}")) for n in range(3)]

    def attempt(_: rung.Request) -> str:
        nest.inner.extend(rung.gather_sync(*jobs, **nest.ports()))
        return "good"

    async def aattempt(_: rung.Request) -> str:
        nest.inner.extend(await rung.gather(*jobs, **nest.ports()))
        return "good"

    policy = rung.policy("call", dollars=2.0, seconds=50)
    outcome = nest.recover(attempt if nest.mode == "sync" else aattempt, policy=policy)
    for index in range(3):
        assert nest.opened(index).parent == outcome.id
        assert nest.opened(index).deadline == nest.clock.now() + 50
    assert outcome.dollars == 0.75


def test_in_a_thread_of_the_attempts_own() -> None:
    """A thread that the attempt begins in its own context makes recoveries that are part of it."""
    nest = Nest("sync")

    def attempt(_: rung.Request) -> str:
        def work() -> None:
            nest.inner.append(rung.recover_sync(Script("good"), "inner", **nest.ports()))

        thread = threading.Thread(target=copy_context().run, args=(work,))
        thread.start()
        thread.join()
        return "good"

    outcome = nest.recover(attempt)
    assert nest.opened().parent == outcome.id


# Time, for real.


def test_the_outer_limit_ends_the_inner_one(nest: Nest) -> None:
    """When the outer attempt's time is up the inner recovery ends with it, and says that it was stopped."""
    heard: list[ev.Event] = []

    def listen(event: ev.Event, _incident: Incident) -> None:
        heard.append(event)

    def hang(_: rung.Request) -> Any:
        return asyncio.sleep(9) if nest.mode == "async" else time.sleep(9)

    real: dict[str, Any] = {"breakers": rung.BreakerRegistry(), "retry_budget": None}

    def attempt(_: rung.Request) -> Any:
        return rung.recover_sync(hang, "inner", listeners=[listen], **real)

    async def aattempt(_: rung.Request) -> Any:
        return await rung.recover(hang, "inner", listeners=[listen], **real)

    policy = rung.policy("call", attempt_seconds=0.1, retries=0)
    if nest.mode == "sync":
        outcome: rung.Outcome[Any] = rung.recover_sync(attempt, "outer", policy=policy, **real)
    else:
        outcome = asyncio.run(rung.recover(aattempt, "outer", policy=policy, **real))
    assert outcome.failure is not None
    assert outcome.failure.kind is Kind.TIMEOUT
    assert [type(event) for event in heard] == [ev.Opened, ev.Cancelled]


def test_an_inner_error_the_outer_attempt_handles(nest: Nest) -> None:
    """An inner recovery that fails, and is dealt with, is no failure of the outer one."""
    attempt = nest.within(Script(HttpError(400)))

    async def ahandle(request: rung.Request) -> str:
        with pytest.raises(HttpError):
            await attempt(request)
        return "dealt with"

    def handle(request: rung.Request) -> str:
        with pytest.raises(HttpError):
            attempt(request)
        return "dealt with"

    outcome = nest.recover(handle if nest.mode == "sync" else ahandle)
    assert outcome.value == "dealt with"
    assert outcome.status is rung.Status.SUCCEEDED
