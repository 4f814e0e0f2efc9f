"""What is said from inside an attempt is heard, whoever of those it started says it."""

from __future__ import annotations

import asyncio
import math
import multiprocessing
import pickle
import threading
from contextvars import Context, copy_context
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain import events as ev
from rung.core.domain.errors import ConfigError
from rung.core.domain.ladder import Action
from rung.engine.loop.ids import INCIDENT_IDS
from rung.engine.timeouts import attempt_reports
from rung.engine.timeouts.attempt_reports import CURRENT_REPORTS, MAIN_THREAD_REPORTS, AttemptReports, install
from rung.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.domain.outcome import Outcome

FAST = rung.policy("call", patience=0, backoff={"base": 0})
UNLIMITED = FAST.replace(budget=rung.policies.Budget(attempts=9, seconds=None))


def alone() -> dict[str, Any]:
    return {"breakers": rung.BreakerRegistry(), "retry_budget": None}


def in_thread(function: Callable[[], Any]) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def in_thread_with_context(function: Callable[[], Any]) -> None:
    context = copy_context()
    in_thread(lambda: context.run(function))


def in_a_guarded_call(function: Callable[[], Any]) -> None:
    rung.guarded(FAST, **alone())(function)()


def in_a_guarded_call_of_a_thread(function: Callable[[], Any]) -> None:
    in_thread_with_context(lambda: in_a_guarded_call(function))


def in_a_loop(function: Callable[[], Any]) -> None:
    async def main() -> None:
        @rung.guarded(FAST, **alone())
        async def inner() -> None:
            await asyncio.to_thread(function)

        await inner()

    asyncio.run(main())


WAYS = [lambda function: function(), in_thread, in_thread_with_context, in_a_guarded_call, in_a_loop]
WAYS.append(in_a_guarded_call_of_a_thread)
WAYS_IN_A_CONTEXT = [way for way in WAYS if way is not in_thread]


async def in_a_task(function: Callable[[], Any]) -> None:
    async def child() -> None:
        function()

    await asyncio.create_task(child())


async def in_a_guarded_task(function: Callable[[], Any]) -> None:
    @rung.guarded(FAST, **alone())
    async def child() -> None:
        await in_a_task(function)

    await asyncio.create_task(child())


async def in_a_worker(function: Callable[[], Any]) -> None:
    await asyncio.to_thread(function)


AWAITED = [in_a_task, in_a_guarded_task, in_a_worker]


def outcome_of(call: Callable[[], Any]) -> Outcome[Any]:
    with pytest.raises(ConnectionResetError) as caught:
        call()
    outcome: Outcome[Any] = caught.value.__dict__["__rung_outcome__"]
    return outcome


def of(outcome: Outcome[Any]) -> list[ev.AttemptFailed]:
    return [event for event in outcome.events if isinstance(event, ev.AttemptFailed)]


class ReportingCall:
    """Says something in one of its attempts, somehow, and fails in all."""

    def __init__(self, say: Callable[[], Any], attempt: int) -> None:
        self.say = say
        self.attempt = attempt
        self.made = 0

    def heard(self) -> bool:
        """Is this the attempt that says something?"""
        self.made += 1
        return self.made == self.attempt

    def run(self, policy: rung.Policy, way: Callable[[Callable[[], Any]], None]) -> Outcome[Any]:
        @rung.guarded(policy, **alone())
        def call() -> None:
            if self.heard():
                way(self.say)
            if self.made:
                raise ConnectionResetError("x")

        self.made = -1
        call()  # the first call of all goes the long way
        return outcome_of(call)

    def arun(self, policy: rung.Policy, way: Callable[[Callable[[], Any]], Any]) -> Outcome[Any]:
        @rung.guarded(policy, **alone())
        async def call() -> None:
            if self.heard():
                await way(self.say)
            raise ConnectionResetError("x")

        return outcome_of(lambda: asyncio.run(call()))


@pytest.mark.parametrize("attempt", [1, 2, 3])
@pytest.mark.parametrize("way", WAYS)
def test_touched(way: Callable[[Callable[[], Any]], None], attempt: int) -> None:
    """An attempt of a blocking call that was touched is the last, whoever of those it started said so."""
    call = ReportingCall(rung.mark_side_effect, attempt)
    outcome = call.run(FAST, way)
    assert call.made == outcome.attempts == attempt
    assert outcome.failure is not None
    assert outcome.failure.evidence.side_effects


@pytest.mark.parametrize("attempt", [1, 2, 3])
@pytest.mark.parametrize("way", WAYS_IN_A_CONTEXT)
def test_touched_without_a_limit(way: Callable[[Callable[[], Any]], None], attempt: int) -> None:
    """The same where no limit is set, in any thread."""
    for run in (lambda work: work(), in_thread):
        call = ReportingCall(rung.mark_side_effect, attempt)
        run(partial(call.run, UNLIMITED, way))
        assert call.made == attempt


@pytest.mark.parametrize("attempt", [1, 2, 3])
@pytest.mark.parametrize("way", AWAITED)
def test_touched_awaiting(way: Callable[[Callable[[], Any]], Any], attempt: int) -> None:
    """An awaited attempt hears its tasks, their tasks, and threads."""
    call = ReportingCall(rung.mark_side_effect, attempt)
    outcome = call.arun(FAST, way)
    assert call.made == outcome.attempts == attempt


def test_touched_in_a_sibling() -> None:
    """What one task did is no reason not to repeat another's call, though both come from one that made calls."""
    made = {"one": 0, "other": 0}

    @rung.guarded(FAST, **alone())
    async def call(name: str, begun: asyncio.Barrier) -> str:
        made[name] += 1
        if made[name] > 1:
            return name
        await begun.wait()
        if name == "one":
            rung.mark_side_effect()
        await begun.wait()
        raise ConnectionResetError("x")

    async def main() -> list[Any]:
        begun = asyncio.Barrier(2)
        made["one"] = 1
        await call("one", begun)
        made["one"] = 0
        return list(await asyncio.gather(call("one", begun), call("other", begun), return_exceptions=True))

    one, other = asyncio.run(main())
    assert isinstance(one, ConnectionResetError)
    assert other == "other"
    assert made == {"one": 1, "other": 2}


def test_before_and_after() -> None:
    """What was said before a call, or between its attempts, is not the call's."""
    rung.mark_side_effect()
    rung.report_cost(5)
    rung.report_step("before")
    outcome = ReportingCall(lambda: None, 1).run(FAST, lambda function: function())
    assert outcome.attempts == 4
    assert outcome.dollars == 0
    assert outcome.steps == ()


def test_on_a_clock_of_ones_own() -> None:
    """Where time is not the real one, what was once said to nobody is not taken for the call's."""
    made = 0

    @rung.guarded(FAST, clock=FakeClock(), idempotent=True, **alone())
    def numbers() -> Any:
        nonlocal made
        made += 1
        yield 1
        if made == 1:
            raise ConnectionResetError("x")
        yield 2

    rung.report_step("something else")
    assert list(numbers()) == [1, 2]


@pytest.mark.parametrize("attempt", [1, 2, 3])
def test_spend_and_completed(attempt: int) -> None:
    """What an attempt costs is its own, and counted once; finished steps are kept."""

    def say() -> None:
        rung.report_cost(0.25)
        rung.report_cost(0.5)
        rung.report_step("read")

    for way in WAYS_IN_A_CONTEXT:
        outcome = ReportingCall(say, attempt).run(FAST, way)
        assert [event.dollars for event in of(outcome)] == [0.75 * (n == attempt) for n in (1, 2, 3, 4)]
        assert outcome.dollars == 0.75
    for asynchronous in AWAITED:
        outcome = ReportingCall(say, attempt).arun(FAST, asynchronous)
        assert [event.dollars for event in of(outcome)] == [0.75 * (n == attempt) for n in (1, 2, 3, 4)]
    outcome = ReportingCall(say, attempt).run(FAST, lambda function: function())
    assert outcome.steps == ("read",)


def test_spend_in_a_call_within_a_call() -> None:
    """What the inner call spent, in whichever of its attempts, the outer one spent too; once."""
    made = 0

    @rung.guarded(FAST, **alone())
    def inner() -> None:
        nonlocal made
        made += 1
        rung.report_cost(1)
        if made < 4:
            raise ConnectionResetError("x")

    @rung.guarded(FAST.with_tries(Action.RETRY, 0), **alone())
    def outer(*, fail: bool = True) -> None:
        if fail:
            inner()
            raise ConnectionResetError("y")

    outer(fail=False)
    made = 5
    inner()
    made = 0
    outcome = outcome_of(outer)
    assert made == 4
    assert outcome.dollars == 4


@pytest.mark.parametrize("dollars", [math.nan, math.inf, -math.inf, -0.01, "1", None, True, 10**400])
@pytest.mark.parametrize("inside", [False, True])
def test_spend_wants_a_sum(dollars: Any, inside: bool) -> None:
    """What is no sum of money is refused where it is said, and counts nothing."""

    def say(_: object = None) -> None:
        with pytest.raises(
            ConfigError, match=r"dollars: .* is invalid; must be a finite number of US dollars, 0 or more"
        ):
            rung.report_cost(dollars)

    if inside:
        assert rung.recover_sync(say, "x", **alone()).dollars == 0
    else:
        say()


def test_completed_wants_a_text() -> None:
    """A step has a name."""
    with pytest.raises(ConfigError, match="step: 5"):
        rung.report_step(5)  # type: ignore[arg-type]


def test_many_sums() -> None:
    """However many sums are reported, no cent is lost, and memory does not grow without end."""
    kept = AttemptReports()
    for n in range(3 * attempt_reports.MAX_COST_REPORTS):
        kept.add_cost((float(n), 1.0))
    assert len(kept.costs) == attempt_reports.MAX_COST_REPORTS
    assert sum(dollars for _, dollars in kept.costs) == 3 * attempt_reports.MAX_COST_REPORTS


def test_who_is_above() -> None:
    """A task hears its children's children as long as it lives; a chain of tasks that ended is forgotten."""

    async def chain(left: int) -> tuple[int, int]:
        task = asyncio.current_task()
        install(task)
        here = CURRENT_REPORTS.get()
        assert here is not None
        if not left:
            return len(here.parents), len([each for each in here.parents if each.is_active])
        ended = asyncio.create_task(asyncio.sleep(0))
        here.owner = lambda: ended if left % 2 else None
        await ended
        return await asyncio.create_task(chain(left - 1))

    async def living(left: int) -> int:
        install(asyncio.current_task())
        here = CURRENT_REPORTS.get()
        assert here is not None
        return await asyncio.create_task(living(left - 1)) if left else len(here.parents)

    assert Context().run(asyncio.run, chain(6)) == (0, 0)
    assert Context().run(asyncio.run, living(3)) == 3
    assert MAIN_THREAD_REPORTS.is_active


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_ids_after_a_fork() -> None:
    """No incident of a forked process has the id of one of its parent's, or of another child's."""
    INCIDENT_IDS.next()
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    children = [context.Process(target=lambda: queue.put([INCIDENT_IDS.next() for _ in range(3)])) for _ in range(2)]
    for child in children:
        child.start()
    ids = [INCIDENT_IDS.next() for _ in range(3)] + queue.get() + queue.get()
    for child in children:
        child.join()
    assert len({name.rpartition("-")[0] for name in ids}) == 3
    assert len(set(ids)) == 9


def test_a_marked_error_can_be_sent() -> None:
    """What a guarded call raises passes from one process to another, with what was done about it."""

    @rung.guarded(FAST, **alone())
    def call(request: rung.Request) -> None:
        raise ConnectionResetError("x")

    with pytest.raises(ConnectionResetError) as caught:
        call(rung.Request(prompt="p"))
    other = pickle.loads(pickle.dumps(caught.value))
    assert other.__dict__["__rung_outcome__"] == caught.value.__dict__["__rung_outcome__"]
    assert other.__notes__ == caught.value.__notes__
