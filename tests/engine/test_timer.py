"""An awaited attempt is ended when its time is up; a cancellation that is not ours always passes."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain import events as ev
from rung.core.domain.errors import AttemptTimeout
from rung.core.domain.failures import Kind, Phase
from rung.core.domain.ladder import Action
from rung.engine.timeouts import async_timeout
from rung.engine.timeouts.async_timeout import OVERDUE, RUNNING, TimeoutSweeper, await_with_timeout, current_sweeper

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator

LONG = 30.0
SHORT = 0.05
FAST = rung.policy("call", backoff={"base": 0})


def alone() -> dict[str, Any]:
    """Ports that share nothing with any other test."""
    return {"breakers": rung.BreakerRegistry(), "retry_budget": rung.RetryBudget()}


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    assert RUNNING == {}
    assert OVERDUE == {}


def make_overdue(*tasks: asyncio.Task[Any]) -> None:
    """Move the time at which the attempts of these tasks are due into the past, and let the sweeper look."""
    for work, (_, task, cancels) in RUNNING.copy().items():
        if task in tasks:
            RUNNING[work] = (0.0, task, cancels)
    current_sweeper().sweep_now()


async def begun(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """A task that has run up to where it waits."""
    task = asyncio.create_task(work)
    for _ in range(3):
        await asyncio.sleep(0)
    return task


class Attempts:
    """An attempt for each call, in turn; the last one again and again."""

    def __init__(self, *attempts: Callable[[], Awaitable[Any]]) -> None:
        self.attempts = attempts
        self.made = 0

    async def __call__(self) -> Any:
        self.made += 1
        return await self.attempts[min(self.made, len(self.attempts)) - 1]()

    def guarded(self, policy: rung.Policy = FAST, **ports: Any) -> Callable[[], Coroutine[Any, Any, Any]]:
        """This, as a guarded function."""

        @rung.guarded(policy, **alone(), **ports)
        async def attempt() -> Any:
            return await self()

        return attempt


async def hang() -> None:
    await asyncio.sleep(LONG)


async def good() -> str:
    return "good"


async def broken() -> None:
    raise ConnectionError("broken")


class TestLimited:
    """Attempts with a timer of their own."""

    def test_on_time(self) -> None:
        """An awaited attempt is ended when its time is up, with our own error."""

        async def main() -> float:
            began = time.monotonic()
            with pytest.raises(AttemptTimeout) as caught:
                await await_with_timeout(hang(), SHORT)
            assert caught.value.seconds == SHORT
            return time.monotonic() - began

        assert asyncio.run(main()) > SHORT * 0.9

    def test_its_name(self) -> None:
        """An attempt that was ended is a timeout in the phase of our own limit, and its ladder goes on."""
        attempts = Attempts(hang, good)
        policy = FAST.replace(attempt_seconds=SHORT)
        outcome = asyncio.run(rung.recover(lambda _: attempts(), "x", policy=policy, **alone()))
        assert outcome.value == "good"
        assert outcome.failure is not None
        assert outcome.failure.kind is Kind.TIMEOUT
        assert outcome.failure.evidence.phase is Phase.LIMIT

    def test_no_limit(self) -> None:
        """Without a limit it is just awaited."""
        assert asyncio.run(await_with_timeout(good(), None)) == "good"

    def test_in_time(self) -> None:
        """A value that comes in time is returned, and the task is not cancelled afterwards."""

        async def main() -> str:
            value = await await_with_timeout(good(), SHORT)
            await asyncio.sleep(2 * SHORT)
            return value

        assert asyncio.run(main()) == "good"

    def test_no_time_at_all(self) -> None:
        """A limit in the past ends an attempt that waits for anything."""

        async def main() -> None:
            with pytest.raises(AttemptTimeout):
                await await_with_timeout(hang(), -1.0)

        asyncio.run(main())

    def test_the_attempts_own_timeout(self) -> None:
        """A TimeoutError of the attempt's own is passed on as it is: our time is not up."""
        mine = TimeoutError("mine")

        async def fail() -> None:
            raise mine

        async def main() -> None:
            with pytest.raises(TimeoutError) as caught:
                await await_with_timeout(fail(), LONG)
            assert caught.value is mine

        asyncio.run(main())

    def test_a_cancellation_passes_at_once(self) -> None:
        """A caller's cancellation ends the whole recovery at once, is no timeout, and carries the outcome."""
        attempts = Attempts(broken, hang)

        async def main() -> BaseException:
            policy = FAST.replace(attempt_seconds=LONG)

            async def attempt(_: rung.Request) -> object:
                return await attempts()

            task = await begun(rung.recover(attempt, "x", policy=policy, **alone()))
            task.cancel()
            with pytest.raises(asyncio.CancelledError) as caught:
                await task
            return caught.value

        outcome = asyncio.run(main()).__dict__["__rung_outcome__"]
        assert attempts.made == 2
        assert outcome.status is rung.Status.PARTIAL
        assert [type(event) for event in outcome.events] == [ev.Opened, ev.AttemptFailed, ev.Decided, ev.Cancelled]

    def test_a_cancellation_while_ours_is_under_way(self) -> None:
        """A caller's cancellation that comes while the attempt still tidies up after ours is not lost."""
        tidying = asyncio.Event()

        async def tidy() -> None:
            try:
                await hang()
            finally:
                tidying.set()
                await hang()

        async def main() -> None:
            task = asyncio.create_task(await_with_timeout(tidy(), SHORT))
            await tidying.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())


class TestSweeper:
    """Attempts on the short way, which share one timer for each loop."""

    def test_overdue(self) -> None:
        """An overdue attempt on the short way is ended and repeated."""
        attempts = Attempts(hang, good)
        call = attempts.guarded()

        async def main() -> Any:
            task = await begun(call())
            make_overdue(task)
            return await task

        assert asyncio.run(main()) == "good"
        assert attempts.made == 2

    def test_its_name(self) -> None:
        """An attempt ended by the sweeper is our own timeout, with the limit it had."""
        call = Attempts(hang).guarded(FAST.replace(attempt_seconds=7.5).with_tries(Action.RETRY, 0))

        async def main() -> AttemptTimeout:
            task = await begun(call())
            make_overdue(task)
            with pytest.raises(AttemptTimeout) as caught:
                await task
            return caught.value

        error = asyncio.run(main())
        assert error.seconds == 7.5
        failure = error.__dict__["__rung_outcome__"].failure
        assert (failure.kind, failure.evidence.phase) == (Kind.TIMEOUT, Phase.LIMIT)

    def test_the_repeated_attempt(self) -> None:
        """The repeated attempt of a call is ended too, and the two failures are told apart."""
        attempts = Attempts(broken, hang, good)
        call = attempts.guarded(FAST.with_tries(Action.RETRY, 1))

        async def main() -> AttemptTimeout:
            task = await begun(call())
            make_overdue(task)
            with pytest.raises(AttemptTimeout) as caught:
                await task
            return caught.value

        outcome = asyncio.run(main()).__dict__["__rung_outcome__"]
        kinds = [event.failure.kind for event in outcome.events if isinstance(event, ev.AttemptFailed)]
        assert kinds == [Kind.NETWORK, Kind.TIMEOUT]
        assert attempts.made == outcome.attempts == 2

    def test_a_repeat_with_little_time(self) -> None:
        """A repeated attempt with little time has a timer of its own."""
        attempts = Attempts(broken, hang, good)
        call = attempts.guarded(with_seconds(SHORT))

        async def main() -> AttemptTimeout:
            with pytest.raises(AttemptTimeout) as caught:
                await call()
            return caught.value

        error = asyncio.run(main())
        assert 0 < error.seconds <= SHORT
        assert attempts.made == 2

    def test_when_due(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The sweeper looks again just when the next attempt is due, not a round later."""
        call = Attempts(hang).guarded(FAST.with_tries(Action.RETRY, 0))

        async def main() -> float:
            task = await begun(call())
            ((work, _),) = RUNNING.items()
            began = time.monotonic()
            RUNNING[work] = (began + SHORT, task, 0)
            current_sweeper().sweep_now()
            with pytest.raises(AttemptTimeout):
                await task
            return time.monotonic() - began

        monkeypatch.setattr(async_timeout, "WATCHDOG_POLL_SECONDS", 600.0)
        assert SHORT <= asyncio.run(main()) < 60.0

    @pytest.mark.parametrize("failures", [0, 1], ids=["first", "repeated"])
    def test_it_came_back_all_the_same(self, failures: int) -> None:
        """The value of an overdue attempt that swallows our cancellation stands, and its task is not cancelled."""

        async def swallow() -> str:
            try:
                await hang()
            except asyncio.CancelledError:
                return "late"
            raise AssertionError

        call = Attempts(*[broken] * failures, swallow).guarded()

        async def main() -> None:
            async def caller() -> str:
                value: str = await call()
                await asyncio.sleep(0)  # where a cancellation that is still pending would hit
                return value

            task = await begun(caller())
            make_overdue(task)
            assert await task == "late"
            assert task.cancelling() == 0

        asyncio.run(main())

    def test_it_failed_in_its_own_way(self) -> None:
        """An overdue attempt that turns our cancellation into an error has failed by that error."""

        async def translate() -> None:
            try:
                await hang()
            except asyncio.CancelledError:
                raise ConnectionError("translated") from None

        call = Attempts(translate, good).guarded()

        async def main() -> None:
            task = await begun(call())
            make_overdue(task)
            assert await task == "good"
            assert task.cancelling() == 0

        asyncio.run(main())

    def test_neither_failed_nor_cancelled(self) -> None:
        """What is no failure passes an overdue attempt, and nothing of it is kept."""

        class Leave(BaseException):
            pass

        async def leave() -> None:
            try:
                await hang()
            except asyncio.CancelledError:
                raise Leave from None

        call = Attempts(leave).guarded()

        async def main() -> None:
            task = await begun(call())
            make_overdue(task)
            with pytest.raises(Leave):
                await task
            assert task.cancelling() == 0

        asyncio.run(main())

    def test_only_once(self) -> None:
        """An overdue attempt that tidies up is not cancelled again by the sweeper's next look."""
        tidied: list[str] = []

        async def tidy() -> None:
            try:
                await hang()
            finally:
                await asyncio.sleep(0.01)
                tidied.append("tidied")

        call, other = Attempts(tidy, good).guarded(), Attempts(good).guarded()

        async def main() -> Any:
            task = await begun(call())
            make_overdue(task)
            await asyncio.sleep(0)
            current_sweeper().sweep_now()
            assert await other() == "good"  # and what ends meanwhile is not taken for it
            return await task

        assert asyncio.run(main()) == "good"
        assert tidied == ["tidied"]

    @pytest.mark.parametrize("failures", [0, 1], ids=["first", "repeated"])
    def test_a_cancellation_passes_at_once(self, failures: int) -> None:
        """A caller's cancellation ends a call on the short way at once."""
        attempts = Attempts(*[broken] * failures, hang, good)
        call = attempts.guarded()

        async def main() -> None:
            task = await begun(call())
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        assert attempts.made == 1 + failures

    @pytest.mark.parametrize("failures", [0, 1], ids=["first", "repeated"])
    @pytest.mark.parametrize("first", ["ours", "theirs"])
    def test_two_cancellations(self, failures: int, first: str) -> None:
        """Whether it comes before or after ours, a caller's cancellation is not lost while the attempt tidies up."""

        async def tidy() -> None:
            try:
                await hang()
            finally:
                await hang()

        attempts = Attempts(*[broken] * failures, tidy, good)
        call = attempts.guarded()

        async def main() -> None:
            task = await begun(call())
            current_sweeper().sweep_now()
            both = [make_overdue, lambda task: task.cancel()]
            for cancel in both if first == "ours" else reversed(both):
                cancel(task)
                await asyncio.sleep(0)
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        assert attempts.made == 1 + failures

    def test_a_task_with_a_past(self) -> None:
        """In a task that once swallowed a cancellation, our own is still known for ours."""
        attempts = Attempts(hang, good)
        call = attempts.guarded()

        async def caller() -> Any:
            try:
                await hang()
            except asyncio.CancelledError:
                return await call()

        async def main() -> Any:
            task = await begun(caller())
            task.cancel()
            for _ in range(3):
                await asyncio.sleep(0)
            make_overdue(task)
            return await task

        assert asyncio.run(main()) == "good"

    def test_both_overdue(self) -> None:
        """Where an outer and an inner attempt are found overdue at once, it is the outer one that is ended."""
        inner = Attempts(hang)
        inner_call = inner.guarded()
        outer = Attempts(inner_call, good)
        outer_call = outer.guarded()

        async def main() -> Any:
            task = await begun(outer_call())
            make_overdue(task)
            return await task

        assert asyncio.run(main()) == "good"
        assert (outer.made, inner.made) == (2, 1)

    def test_both_overdue_in_two_tasks(self) -> None:
        """The same where the inner attempt runs in a task of its own."""
        inner = Attempts(hang)
        inner_call = inner.guarded()
        tasks: list[asyncio.Task[Any]] = []

        async def spread() -> None:
            tasks.append(asyncio.create_task(inner_call()))
            await asyncio.gather(*tasks)

        outer = Attempts(spread, good)
        outer_call = outer.guarded()

        async def main() -> Any:
            task = await begun(outer_call())
            make_overdue(task, *tasks)
            return await task

        assert asyncio.run(main()) == "good"
        assert (outer.made, inner.made) == (2, 1)

    def test_a_callers_cancellation_before_the_first_look(self) -> None:
        """A caller's cancellation passes, also when the call then tidies up past its time limit."""
        tidying = asyncio.Event()

        async def tidy() -> None:
            try:
                await hang()
            finally:
                tidying.set()
                await hang()

        call = Attempts(tidy, good).guarded()

        async def main() -> None:
            task = await begun(call())
            task.cancel()
            await tidying.wait()
            make_overdue(task)
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())

    def test_in_a_task_that_is_being_cancelled(self) -> None:
        """A call made while its task tidies up after a cancellation has a limit of its own, more than once."""
        attempts = Attempts(hang)
        call = attempts.guarded(FAST.with_tries(Action.RETRY, 0))
        ended: list[str] = []

        async def tidy() -> None:
            try:
                await hang()
            finally:
                for _ in range(2):
                    try:
                        await call()
                    except AttemptTimeout:
                        ended.append("time up")

        async def main() -> None:
            task = await begun(tidy())
            task.cancel()
            for _ in range(2):
                made = attempts.made
                while attempts.made == made:  # noqa: ASYNC110  # whichever turn of the loop it is
                    await asyncio.sleep(0)
                make_overdue(task)
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        assert ended == ["time up"] * 2

    def test_one_that_swallows_its_cancellation_is_closed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A guarded coroutine that swallows its cancellation is closed after a grace, and said to be left behind."""
        monkeypatch.setattr(async_timeout, "CANCEL_GRACE_SECONDS", 0.02)
        swallowed: list[str] = []

        async def stubborn() -> str:
            while True:
                try:
                    await asyncio.sleep(LONG)
                except asyncio.CancelledError:
                    swallowed.append("cancelled")

        async def main() -> Any:
            call = rung.guarded(rung.policy("call", attempts=1), **alone())(stubborn)
            task = await begun(call())
            make_overdue(task)
            with pytest.raises(AttemptTimeout, match="left behind"):
                await task
            return task.cancelling()

        assert asyncio.run(main()) == 0
        assert swallowed == ["cancelled"]
        assert not async_timeout.CLOSED

    def test_one_that_is_overdue_does_not_disturb_another(self) -> None:
        """While some other attempt is being ended a good one comes back as it was; it is cancelled only once."""

        async def main() -> None:
            task = await begun(asyncio.sleep(LONG))
            RUNNING["other"] = (0.0, task, 0)
            current_sweeper().sweep_now()
            current_sweeper().sweep_now()
            assert task.cancelling() == 1
            assert await Attempts(good).guarded()() == "good"
            assert OVERDUE == {"other": 0}
            RUNNING.clear()
            OVERDUE.clear()
            await asyncio.gather(task, return_exceptions=True)

        asyncio.run(main())

    def test_a_call_without_a_task(self) -> None:
        """A coroutine that is driven by hand, in a loop and in no task, is a call like any other."""
        call = Attempts(good).guarded()

        async def main() -> Any:
            await call()  # by a task, before
            loop = asyncio.get_running_loop()
            ended: asyncio.Future[Any] = loop.create_future()

            def by_hand() -> None:
                try:
                    call().send(None)
                except StopIteration as end:
                    ended.set_result(end.value)

            loop.call_soon(by_hand)
            return await ended

        assert asyncio.run(main()) == "good"

    def test_work_without_a_task(self) -> None:
        """What nobody could cancel is left alone."""
        work = object()

        async def main() -> None:
            RUNNING[work] = (0.0, None, 0)
            try:
                TimeoutSweeper(asyncio.get_running_loop()).sweep_now()
                assert work not in OVERDUE
            finally:
                del RUNNING[work]

        asyncio.run(main())


class TestLoops:
    """More than one event loop."""

    def test_a_loop_after_another(self) -> None:
        """A new loop in the same thread has a sweeper of its own, and the closed one's is forgotten."""

        async def main() -> TimeoutSweeper:
            await Attempts(good).guarded()()
            assert current_sweeper().loop is asyncio.get_running_loop()
            return current_sweeper()

        call = Attempts(good).guarded()
        first, second = asyncio.run(main()), asyncio.run(main())
        asyncio.run(call())
        asyncio.run(call())  # the same function, in another loop
        assert first is not second
        assert first not in async_timeout.SWEEPERS.values()

    def test_loops_in_turn(self) -> None:
        """A loop keeps its one sweeper, whatever other loop was run in the same thread in between."""

        async def main() -> TimeoutSweeper:
            await call()
            return current_sweeper()

        call = Attempts(good).guarded()
        with asyncio.Runner() as one, asyncio.Runner() as other:
            sweepers = [(one.run(main()), other.run(main())) for _ in range(5)]
        assert len(set(sweepers)) == 1

    def test_two_threads(self) -> None:
        """A function called in two loops at once registers each attempt with the task it runs in."""
        wrong: list[object] = []
        call_count = 20_000

        @rung.guarded(FAST, **alone())
        async def attempt(task: asyncio.Task[Any] | None) -> None:
            if not any(owner is task for _, owner, _ in RUNNING.copy().values()):
                wrong.append(task)

        async def main() -> None:
            for _ in range(call_count):
                await attempt(asyncio.current_task())

        threads = [threading.Thread(target=lambda: asyncio.run(main())) for _ in range(2)]
        switch = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(switch)
        assert wrong == []

    def test_another_threads_attempts(self) -> None:
        """A sweeper ends the overdue attempts of its own loop only."""
        attempts = Attempts(hang, good)
        call = attempts.guarded()
        waiting, looked = threading.Event(), threading.Event()

        async def other() -> Any:
            task = await begun(call())
            ((work, _),) = RUNNING.items()
            RUNNING[work] = (0.0, task, 0)
            waiting.set()
            await asyncio.to_thread(looked.wait)
            assert not task.cancelling()
            current_sweeper().sweep_now()
            return await task

        results: list[Any] = []
        thread = threading.Thread(target=lambda: results.append(asyncio.run(other())))
        thread.start()
        assert waiting.wait(LONG)

        async def main() -> None:
            current_sweeper().sweep_now()

        asyncio.run(main())
        looked.set()
        thread.join()
        assert results == ["good"]


def with_seconds(seconds: float) -> rung.Policy:
    """A policy with one repeat, and so much time for each attempt."""
    rungs = [{"action": "retry", "tries": 1}, {"action": "surface"}]
    ladder: Any = {"name": "short", "rungs": rungs}
    return rung.policy(ladder, backoff={"base": 0}, attempt_seconds=seconds)
