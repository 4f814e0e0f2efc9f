"""Tasks: functions made of steps, which any process can take up again."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from rung.core.domain.errors import ConfigError, LeaseLost, RungError, StoreUnavailable
from rung.engine.durable import tasks
from rung.engine.durable.store_retry import RETRY_DELAYS_SECONDS
from rung.engine.durable.task_steps import AsyncDurableTask, DurableTask
from rung.store import open_journal
from rung.store.durable_runs import DurableRunStore
from rung.store.run_lease import DurableRunLease
from rung.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rung.store.journal.journal import Journal


class Died(BaseException):
    """As if the process were gone."""


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with open_journal(tmp_path / "journal.db") as journal:
        yield journal


@pytest.fixture(autouse=True)
def _no_tasks() -> Iterator[None]:
    before = dict(tasks.TASKS)
    tasks.TASKS.clear()
    yield
    tasks.TASKS.clear()
    tasks.TASKS.update(before)


def left_behind(journal: Journal) -> None:
    """Nobody has them any more."""
    journal.write(
        lambda connection: connection.execute("UPDATE run SET owner = '', lease = 0"), lambda _: True
    ).result()


def test_steps_are_done_once(journal: Journal) -> None:
    """Cut off between two steps: taken up again, the first is not done a second time."""
    done: list[str] = []
    deaths = [Died()]

    def act(what: str) -> str:
        done.append(what)
        return what.upper()

    @tasks.task("letters")
    def letters(first: str, second: str) -> list[str]:
        one = tasks.step("one", act, first)
        if deaths:
            raise deaths.pop()
        return [one, tasks.step("two", act, second)]

    with pytest.raises(Died):
        tasks.start(journal, "r", "letters", first="a", second="b")
    left_behind(journal)
    assert tasks.resume(journal) == {"r": ["A", "B"]}
    assert done == ["a", "b"]
    assert tasks.start(journal, "r", "letters", first="a", second="b") == ["A", "B"]
    assert tasks.resume(journal) == {}


def test_a_task_that_fails(journal: Journal) -> None:
    """What it raised is raised, kept as a name, and told to whoever asks later; it does not stop the others."""

    @tasks.task("bad")
    def bad() -> None:
        raise TimeoutError("too slow")

    @tasks.task("good")
    def good() -> int:
        return 7

    journal.runs.submit("a", "bad", {})
    journal.runs.submit("b", "good", {})
    ended = tasks.resume(journal)
    assert isinstance(ended["a"], TimeoutError)
    assert ended["b"] == 7
    with pytest.raises(RungError, match="ended as failed: too slow"):
        tasks.start(journal, "a", "bad")


def test_sleep_keeps_its_moment(journal: Journal) -> None:
    """A sleep that was begun before a crash ends when it would have ended."""
    claim = journal.runs.claim("r")
    clock = FakeClock(100.0)
    work = DurableTask(claim, lambda _: None, clock.now, clock.sleep)
    work.recorded_steps["nap"] = 99.0
    work.sleep("nap", 60.0)  # its moment has passed
    work.step("short", lambda: 100.0, ())
    work.sleep("short", 0.0)
    assert clock.sleeps == []
    work.sleep("new", 0.25)
    assert claim.steps()["new"] == 100.25
    assert clock.sleeps == [0.25]


def test_wait_for_a_word(journal: Journal) -> None:
    """A word from outside is heard, kept, and not waited for again; without one the time is up."""

    @tasks.task("asks")
    def asks() -> Any:
        return [tasks.wait("review", 10.0), tasks.wait("nobody", 0.0)]

    threading.Timer(0.15, lambda: journal.runs.send("r/review", {"ok": True})).start()
    assert tasks.start(journal, "r", "asks") == [{"ok": True}, None]
    journal.runs.send("r/review", {"ok": False})
    work = DurableTask(journal.runs.claim("s"), lambda _: None)
    work.recorded_steps["wait.review"] = {"ok": True}
    assert work.wait("review", None) == {"ok": True}
    assert tasks.start(journal, "r", "asks")[0] == {"ok": True}


def test_a_wait_without_end(journal: Journal) -> None:
    """Without a timeout it waits until it is told."""
    told = iter([None, None, "go"])
    work = DurableTask(journal.runs.claim("r"), lambda _: next(told))
    assert work.wait("x", None) == "go"


def test_three_times_and_no_further(journal: Journal) -> None:
    """A task that kills whoever takes it up is given up."""

    @tasks.task("deadly")
    def deadly() -> None:
        raise Died

    for _ in range(3):
        with pytest.raises(Died):
            tasks.start(journal, "r", "deadly")
        left_behind(journal)
    with pytest.raises(RungError, match="ended as partial: the run was resumed three times"):
        tasks.start(journal, "r", "deadly")


def test_awaited(journal: Journal) -> None:
    """A coroutine function has the same three, awaited; cut off and taken up again, nothing is done twice."""
    done: list[str] = []
    deaths = [Died()]

    async def act(what: str) -> str:
        await asyncio.sleep(0)
        done.append(what)
        return what.upper()

    @tasks.task("letters")
    async def letters(first: str) -> list[Any]:
        one = await tasks.step("one", act, first)
        if deaths:
            raise deaths.pop()
        await tasks.sleep("nap", 0.01)
        return [one, await tasks.step("plain", done.count, "a"), await tasks.wait("word", 0.0)]

    with pytest.raises(Died):
        asyncio.run(tasks.start(journal, "r", "letters", first="a"))
    left_behind(journal)
    assert tasks.resume(journal) == {"r": ["A", 1, None]}
    assert done == ["a"]
    assert asyncio.run(tasks.start(journal, "r", "letters", first="a")) == ["A", 1, None]


def test_an_awaited_task_leaves_the_loop_free(journal: Journal) -> None:
    """While it works, sleeps, waits and is written down, others go on."""
    turns = 0

    @tasks.task("slow")
    async def slow() -> Any:
        await tasks.sleep("nap", 0.1)
        await tasks.step("block", time.sleep, 0.1)
        return [await tasks.wait("review", 5.0), await tasks.wait("review", 5.0)]

    async def main() -> Any:
        nonlocal turns
        work = asyncio.create_task(tasks.start(journal, "r", "slow"))
        longest, last = 0.0, time.monotonic()
        while not work.done():
            await asyncio.sleep(0.001)
            turns += 1
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
            if turns == 200:
                await asyncio.to_thread(journal.runs.send, "r/review", "yes")
        return await work

    assert asyncio.run(main()) == ["yes", "yes"]
    assert turns > 20  # a loop that is held up has a handful


def test_an_awaited_wait_without_end(journal: Journal) -> None:
    """Without a timeout it waits until it is told."""
    told = iter([None, None, "go"])
    work = AsyncDurableTask(journal.runs.claim("r"), lambda _: next(told))
    assert asyncio.run(work.wait("x", None)) == "go"


def test_an_awaited_task_that_fails(journal: Journal) -> None:
    """What it raised is raised, and kept; three times without a step, it is given up."""

    @tasks.task("bad")
    async def bad() -> None:
        raise TimeoutError("too slow")

    @tasks.task("deadly")
    async def deadly() -> None:
        raise Died

    with pytest.raises(TimeoutError):
        asyncio.run(tasks.start(journal, "a", "bad"))
    with pytest.raises(RungError, match="ended as failed: too slow"):
        asyncio.run(tasks.start(journal, "a", "bad"))
    for _ in range(3):
        with pytest.raises(Died):
            asyncio.run(tasks.start(journal, "r", "deadly"))
        left_behind(journal)
    with pytest.raises(RungError, match="ended as partial: the run was resumed three times"):
        asyncio.run(tasks.start(journal, "r", "deadly"))


def test_resuming_an_awaited_task_in_a_loop(journal: Journal) -> None:
    """`resume` blocks, so a loop is not to be blocked with it: it says what to do instead, and that works."""

    @tasks.task("good")
    async def good() -> int:
        return 7

    async def main() -> tuple[Any, Any]:
        return tasks.resume(journal)["r"], await asyncio.to_thread(tasks.resume, journal)

    journal.runs.submit("r", "good", {})
    refused, ended = asyncio.run(main())
    assert isinstance(refused, RungError)
    assert "asyncio.to_thread(rung.durable.resume" in str(refused)
    assert ended == {"r": 7}


class Full(DurableRunLease):
    """A store in trouble."""

    busy = 0

    def record(self, key: str, result: Any) -> None:
        self._busy()
        super().record(key, result)

    def finish(self, result: Any) -> None:
        self._busy()
        super().finish(result)

    def _busy(self) -> None:
        type(self).busy -= 1
        if type(self).busy >= 0:
            raise StoreUnavailable("the disk is full")


def full(journal: Journal, times: int) -> Full:
    """A claim whose store is in trouble so often."""
    claim = journal.runs.claim("r")
    claim.__class__ = type("Now", (Full,), {"busy": times})
    assert isinstance(claim, Full)
    return claim


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_step_and_a_store_in_trouble(journal: Journal, asynchronous: bool) -> None:
    """A step is done once and kept as soon as it can be; if it cannot be kept at all, that is raised."""
    done: list[str] = []
    slept: list[float] = []

    def act() -> str:
        done.append("x")
        return "good"

    async def asleep(seconds: float) -> None:
        slept.append(seconds)

    def step(key: str) -> Any:
        if asynchronous:
            return asyncio.run(AsyncDurableTask(claim, lambda _: None, sleep=asleep).step(key, act, ()))
        return DurableTask(claim, lambda _: None, sleep=slept.append).step(key, act, ())

    claim = full(journal, len(RETRY_DELAYS_SECONDS))
    assert step("one") == "good"
    assert slept == list(RETRY_DELAYS_SECONDS)
    type(claim).busy = len(RETRY_DELAYS_SECONDS) + 1
    with pytest.raises(StoreUnavailable, match="the disk is full"):
        step("two")
    assert done == ["x", "x"]
    assert claim.steps() == {"one": "good"}


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_task_whose_step_cannot_be_kept(journal: Journal, asynchronous: bool) -> None:
    """It has not failed: the run stays open, and whoever takes it up later goes on."""
    troubles = [StoreUnavailable("the disk is full")]

    def plain() -> int:
        if troubles:
            raise troubles.pop()
        return 7

    async def awaited() -> int:
        return plain()

    tasks.task("one")(awaited if asynchronous else plain)
    with pytest.raises(StoreUnavailable):
        tasks.start_blocking(journal, "r", "one")
    assert [run.id for run in journal.runs.open_runs()] == ["r"]
    left_behind(journal)
    assert tasks.resume(journal) == {"r": 7}


def test_an_end_that_cannot_be_kept(journal: Journal) -> None:
    """The user is told, and the run stays open: whoever takes it up comes to the same without a step."""
    claim = full(journal, len(RETRY_DELAYS_SECONDS) + 1)
    with pytest.warns(RuntimeWarning, match="the result of run 'r' could not be recorded: the disk is full"):
        tasks.record_end(claim, {"status": "succeeded"}, lambda _: None)
    assert [run.id for run in journal.runs.open_runs()] == ["r"]
    tasks.record_end(claim, {"status": "succeeded"})
    assert journal.runs.open_runs() == []


def test_bad_input(journal: Journal) -> None:
    """Names are texts, belong to one function, and must be known; steps belong into tasks; arguments are JSON."""
    with pytest.raises(ConfigError, match="a non-empty string"):
        tasks.task("")
    tasks.task("one")(len)
    tasks.task("one")(len)
    with pytest.raises(ConfigError, match="no other task"):
        tasks.task("one")(max)
    with pytest.raises(ConfigError, match="a registered task: one"):
        tasks.start(journal, "r", "two")
    tasks.TASKS.clear()
    with pytest.raises(ConfigError, match="none is registered"):
        tasks.start(journal, "r", "two")
    calls: list[Callable[[], Any]] = [
        lambda: tasks.step("a", len),
        lambda: tasks.sleep("a", 1),
        lambda: tasks.wait("a"),
    ]
    for call in calls:
        with pytest.raises(RungError, match="outside a running task"):
            call()
    tasks.task("one")(len)
    with pytest.raises(TypeError, match="must be JSON"):
        tasks.start(journal, "r", "one", x=object())


def test_what_is_open(journal: Journal) -> None:
    """Runs that have not ended are told, and whether somebody has them."""
    assert journal.runs.submit("a", "one", {"x": 1})
    assert not journal.runs.submit("a", "one", {"x": 2})
    journal.runs.claim("b")
    found = {run.id: (run.task, run.arguments, run.owned) for run in DurableRunStore(journal).open_runs()}
    assert found == {"a": ("one", {"x": 1}, False), "b": ("", None, True)}
    assert tasks.resume(journal) == {}


def two_steps(between: Callable[[], None], done: list[str], *, as_coroutine: bool) -> None:
    """Register a task of two steps, between which something happens."""

    async def coroutine() -> None:
        await tasks.step("first", done.append, "first")
        between()
        await tasks.step("second", done.append, "second")

    def plain() -> None:
        tasks.step("first", done.append, "first")
        between()
        tasks.step("second", done.append, "second")

    tasks.task("two")(coroutine if as_coroutine else plain)


@pytest.mark.parametrize("is_taken", [True, False])
@pytest.mark.parametrize("as_coroutine", [True, False])
def test_a_process_that_slept_between_two_steps(journal: Journal, *, as_coroutine: bool, is_taken: bool) -> None:
    """It begins no step of a run that another process has claimed meanwhile, and goes on with one that is still its own."""
    clock, done = FakeClock(), list[str]()
    journal.runs.now = clock.now

    def sleep() -> None:
        clock.advance(journal.runs.lease + 1)
        if is_taken:
            journal.runs.claim("run", "two")

    two_steps(sleep, done, as_coroutine=as_coroutine)
    if is_taken:
        with pytest.raises(LeaseLost):
            tasks.start_blocking(journal, "run", "two")
    else:
        tasks.start_blocking(journal, "run", "two")
    assert done == (["first"] if is_taken else ["first", "second"])
