"""Limits hold for everything a recovery calls: checks, planners, plain functions, stubborn coroutines."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import Future
from typing import Any

import pytest

import rung
from rung.core.domain import events as ev
from rung.engine.timeouts import async_timeout
from rung.testing import FakeClock

FAST: Any = {"backoff": {"base": 0}}
SHORT = 0.1


def hanging(*_: object) -> None:
    time.sleep(30)


async def ahanging(*_: object) -> None:
    await asyncio.sleep(30)


def alone(**ports: Any) -> dict[str, Any]:
    return {"breakers": rung.BreakerRegistry(), "retry_budget": None, **ports}


def recover(mode: str, **ports: Any) -> rung.Outcome[Any]:
    async def attempt(_: rung.Request) -> str:
        return "done"

    if mode == "sync":
        return rung.recover_sync(lambda _: "done", "x", **alone(**ports))
    return asyncio.run(rung.recover(attempt, "x", **alone(**ports)))


@pytest.mark.parametrize(("mode", "check"), [("sync", hanging), ("async", hanging), ("async", ahanging)])
@pytest.mark.parametrize("limit", [{"seconds": SHORT}, {"attempt_seconds": SHORT, "attempts": 1}])
@pytest.mark.filterwarnings("ignore:rung. check failed")
def test_a_check_obeys_the_limits(mode: str, check: Any, limit: dict[str, Any]) -> None:
    """A check that hangs is ended at the limit, and its result is not accepted."""
    outcome = recover(mode, check=check, policy=rung.policy("call", **FAST, **limit))
    assert outcome.status == "failed"
    assert any("the check timed out" in event.error for event in outcome.events if isinstance(event, ev.Crashed))


@pytest.mark.parametrize(("mode", "planner"), [("sync", hanging), ("async", hanging), ("async", ahanging)])
def test_a_planner_obeys_the_limits(mode: str, planner: Any) -> None:
    """A planner that hangs is ended with its rung, and the rung is skipped."""
    rungs = [{"action": "replan", "seconds": SHORT}, {"action": "surface"}]
    ladder: Any = {"name": "short", "rungs": rungs}
    outcome = recover(
        mode,
        check=lambda _: False,
        rung_handlers={"replan": planner},
        policy=rung.policy(ladder, **FAST),
    )
    skipped = [event.reason for event in outcome.events if isinstance(event, ev.Skipped)]
    assert any("handler timed out" in reason for reason in skipped)


def test_a_plain_function_in_an_async_recovery_obeys_its_limit() -> None:
    """A plain function given to `recover` runs in a thread: its limit holds, and the event loop goes on."""
    ticks, released = [0], threading.Event()

    def attempt(_: rung.Request) -> bool:
        return released.wait(30)

    async def tick() -> None:
        while True:
            ticks[0] += 1
            await asyncio.sleep(0.01)

    async def main() -> rung.Outcome[Any]:
        ticking = asyncio.create_task(tick())
        policy = rung.policy("call", attempt_seconds=SHORT, attempts=1, **FAST)
        outcome = await rung.recover(attempt, "x", policy=policy, **alone())
        ticking.cancel()
        return outcome

    outcome = asyncio.run(main())
    released.set()
    assert outcome.failure is not None
    assert (outcome.status, outcome.failure.kind) == ("failed", "timeout")
    assert "left behind" in outcome.failure.message
    assert ticks[0] > 1


@pytest.mark.parametrize("attempt", [lambda _: 7, lambda _: 1 / 0, lambda _: asyncio.sleep(0, 7)])
def test_plain_functions_return_and_raise_as_before(attempt: Any) -> None:
    """A plain function's value, error or awaitable reaches the recovery, with the context of the caller."""
    outcome = asyncio.run(rung.recover(attempt, "x", policy=rung.policy("call", **FAST), **alone()))
    assert outcome.value == 7 or isinstance(outcome.error, ZeroDivisionError)


@pytest.mark.parametrize("swallowed", [asyncio.CancelledError, BaseException])
def test_a_coroutine_that_swallows_its_cancellation_is_left_behind(
    swallowed: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a grace a coroutine that ignores its cancellation is left behind, said, and never resumed."""
    monkeypatch.setattr(async_timeout, "CANCEL_GRACE_SECONDS", 0.05)
    resumed: list[float] = []

    async def stubborn(_: rung.Request) -> Any:
        while len(resumed) < 100:  # at the exit of the interpreter, every await fails
            try:
                await asyncio.sleep(30)
            except swallowed:
                resumed.append(1.0)

    async def main() -> tuple[rung.Outcome[Any], int]:
        policy = rung.policy("call", attempt_seconds=SHORT, attempts=1, **FAST)
        outcome: rung.Outcome[Any] = await rung.recover(stubborn, "x", policy=policy, **alone())
        task = asyncio.current_task()
        assert task is not None
        return outcome, task.cancelling()

    outcome, cancelling = asyncio.run(main())
    assert outcome.failure is not None
    assert (outcome.failure.kind, cancelling) == ("timeout", 0)
    assert "left behind" in outcome.failure.message
    assert async_timeout.OVERDUE == {}


def test_a_slow_cleanup_within_the_grace_ends_by_itself() -> None:
    """A cancelled attempt has time for its cleanup, and is then an ordinary timeout."""
    cleaned: list[bool] = []

    async def tidy(_: rung.Request) -> Any:
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.05)
            cleaned.append(True)

    policy = rung.policy("call", attempt_seconds=SHORT, attempts=1, **FAST)
    outcome: rung.Outcome[Any] = asyncio.run(rung.recover(tidy, "x", policy=policy, **alone()))
    assert outcome.failure is not None
    assert cleaned == [True]
    assert "left behind" not in outcome.failure.message


@pytest.mark.parametrize(
    ("mode", "slow"), [("sync", hanging), ("async", hanging), ("async", ahanging), ("sync", lambda *_: Future())]
)
@pytest.mark.filterwarnings("ignore:rung. operator failed")
def test_a_question_obeys_the_total_limit(mode: str, slow: Any) -> None:
    """A question that nobody answers ends with the time budget of the incident, as blocked."""
    ladder: Any = {"name": "short", "rungs": [{"action": "ask"}]}
    policy = rung.policy(ladder, seconds=0.2, **FAST)
    outcome = recover(mode, check=lambda _: False, ask=slow, policy=policy, clock=FakeClock())  # which stands still
    assert outcome.status == "blocked"
    assert any("the operator timed out" in event.error for event in outcome.events if isinstance(event, ev.Crashed))


@pytest.mark.parametrize(("mode", "slow"), [("sync", hanging), ("async", hanging), ("async", ahanging)])
@pytest.mark.filterwarnings("ignore:rung. (checkpoint|investigate) failed")
def test_checkpoints_and_investigators_obey_the_limits(mode: str, slow: Any) -> None:
    """A checkpoint or an investigator that hangs is ended with its rung, and recorded."""

    class Slow:
        take = restore = staticmethod(slow)

    rungs = [{"action": "replan", "seconds": SHORT}, {"action": "surface"}]
    ladder: Any = {"name": "short", "rungs": rungs}
    for ports in ({"checkpoint": Slow()}, {"investigate": slow}):
        outcome = recover(mode, check=lambda _: False, policy=rung.policy(ladder, **FAST), **ports)
        crashed = [event for event in outcome.events if isinstance(event, ev.Crashed)]
        assert any(event.what in ports and "timed out" in event.error for event in crashed)
