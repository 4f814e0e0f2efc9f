"""An attempt without progress for longer than similar attempts have taken enters the ladder by itself, as `stalled`."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain import events as ev
from rung.engine.attempt_api import progress_reporter, report_progress
from rung.engine.loop.run import CURRENT
from rung.engine.timeouts.patience import Patience

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rung.store.journal.journal import Journal

SOON: dict[str, Any] = {"factor": 1.0, "samples": 3, "min_seconds": 0.05}
LONG = 30.0  # far more than any test takes


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """Return a journal with three quick successes of the task `build`."""
    with rung.journal(tmp_path / "journal.db") as opened:
        for _ in range(3):
            rung.recover_sync(lambda _: "done", "build it", journal=opened)
        yield opened


def kinds(outcome: rung.Outcome[Any]) -> list[str]:
    """Return the kinds of an outcome's failures."""
    return [event.failure.kind.value for event in outcome.events if isinstance(event, ev.AttemptFailed)]


def recover(mode: str, journal: Any, hang: Callable[[], object], **settings: Any) -> rung.Outcome[Any]:
    """Recover with a first attempt that hangs, on its own thread or event loop if the mode says so."""
    policy = rung.policy("task", backoff={"base": 0}, **{"stalls": SOON, **settings})
    attempts: list[rung.Request] = []

    def attempt(request: rung.Request) -> str:
        attempts.append(request)
        if len(attempts) == 1:
            hang()
        return "done"

    async def coroutine(request: rung.Request) -> str:
        attempts.append(request)
        if len(attempts) == 1:
            await asyncio.sleep(LONG)
        return "done"

    def blocking() -> rung.Outcome[Any]:
        return rung.recover_sync(attempt, "build it", policy=policy, journal=journal, retry_budget=None)

    if mode == "main":
        return blocking()
    if mode == "thread":
        ended: list[rung.Outcome[Any]] = []
        thread = threading.Thread(target=lambda: ended.append(blocking()))
        thread.start()
        thread.join()
        return ended[0]
    function: Any = coroutine if mode == "coroutine" else attempt
    return asyncio.run(rung.recover(function, "build it", policy=policy, journal=journal, retry_budget=None))


@pytest.mark.parametrize("mode", ["main", "thread", "coroutine", "function"])
@pytest.mark.parametrize("limit", [{}, {"seconds": None}])
def test_a_silent_attempt_enters_the_ladder(journal: Journal, mode: str, limit: dict[str, Any]) -> None:
    """An attempt that is silent for longer than its history allows is a failure of kind stalled, and a nudge follows."""
    released = threading.Event()
    outcome = recover(mode, journal, lambda: released.wait(LONG), **limit)
    released.set()
    failure = next(event.failure for event in outcome.events if isinstance(event, ev.AttemptFailed))
    assert failure.kind == "stalled"
    assert "longer than similar attempts have taken" in failure.message
    assert outcome.path[:1] == (2,)


@pytest.mark.parametrize(
    "settings",
    [
        {"stalls": {**SOON, "enabled": False}, "attempt_seconds": 0.3},
        {"stalls": {**SOON, "samples": 4}, "attempt_seconds": 0.3},
        {"stalls": {**SOON, "min_seconds": 600}, "attempt_seconds": 0.3},
    ],
)
def test_little_evidence_ends_nothing(journal: Journal, settings: dict[str, Any]) -> None:
    """Switched off, with too few earlier attempts, or below the shortest time, only the other limits hold."""
    outcome = recover("main", journal, lambda: time.sleep(LONG), **settings)
    assert kinds(outcome) == ["timeout"]


def test_another_task_has_another_history(tmp_path: Path) -> None:
    """Attempts at another task, and tasks without a prompt or a name, do not count."""
    with rung.journal(tmp_path / "journal.db") as journal:
        for request in (rung.Request(prompt="test it"), rung.Request(), rung.Request(prompt="build it", model="large")):
            for _ in range(3):
                rung.recover_sync(lambda _: "done", request, journal=journal)
        outcome = recover("main", journal, lambda: time.sleep(LONG), attempt_seconds=0.3)
        assert kinds(outcome) == ["timeout"]
        assert journal.similar_durations(outcome.id, "large", "") != []


def test_a_named_task_has_its_history() -> None:
    """A request's task is no part of its digest: it does not make a request another one."""
    assert rung.Request(prompt="x", task="build").digest() == rung.Request(prompt="x").digest()


@pytest.mark.parametrize("mode", ["main", "thread", "function"])
def test_progress_gives_more_time(journal: Journal, mode: str) -> None:
    """Progress, a step, a cost or a side effect that an attempt reports moves the time at which it would be stalled."""
    moved: list[bool] = []

    def at_work() -> None:
        run = CURRENT.get()
        assert run is not None
        assert run.patience is not None
        signs: list[Any] = [report_progress, lambda: rung.report_step("a part"), lambda: rung.report_cost(0.0)]
        for sign in (*signs, rung.mark_side_effect, progress_reporter()):
            run.patience.last_sign = 0.0
            sign()
            moved.append(run.patience.last_sign > 0.0)

    outcome = recover(mode, journal, at_work, stalls={**SOON, "min_seconds": 600})
    assert outcome.status == "succeeded"
    assert moved == [True] * 5
    report_progress()  # without an attempt: nothing happens
    progress_reporter()()


def test_the_history_is_asked_once_and_late() -> None:
    """Patience asks for the history only after the shortest time, in a thread; a history that fails ends nothing."""
    asked: list[str] = []
    done = threading.Event()

    def look_up() -> list[float]:
        asked.append(threading.current_thread().name)
        done.set()
        raise OSError("the store is gone")

    late = Patience(rung.policy("task").stalls, look_up)
    assert late.deadline() > time.monotonic() + 500
    assert not asked
    soon = Patience(rung.policy("task", stalls={"min_seconds": 1e-9}).stalls, look_up)
    time.sleep(0.001)
    assert soon.deadline() > time.monotonic()
    assert done.wait(LONG)
    while soon.seconds is None:
        time.sleep(0.001)
    assert soon.deadline() == float("inf")
    assert not soon.is_over()
    assert asked == ["rung-history"]
