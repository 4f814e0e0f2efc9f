"""Guarded functions where breaker, budget and limits meet the short way."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

import rung
from rung.engine import flat, interrupt, timer

QUICK = rung.policy("call", backoff={"base": 0})


def ports(**more: Any) -> dict[str, Any]:
    return {"breakers": rung.Breakers(), "retry_budget": rung.RetryBudget(), **more}


class Flaky:
    """Fails so often, then returns."""

    def __init__(self, times: int, error: type[Exception] = ConnectionResetError) -> None:
        self.times = times
        self.error = error
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.times:
            raise self.error(f"failure {self.calls}")
        return "done"


def both(flaky: Flaky, **more: Any) -> list[Any]:
    """The same call, guarded as a function and as a coroutine function, each to be called plainly."""
    policy: rung.Policy = more.pop("policy", QUICK)

    @rung.guarded(policy, **ports(**more))
    def sync() -> str:
        return flaky()

    @rung.guarded(policy, **ports(**more))
    async def awaited() -> str:
        return flaky()

    return [sync, lambda: asyncio.run(awaited())]


@pytest.mark.parametrize("mode", [0, 1])
def test_a_circuit_that_opens_under_a_call_refuses_its_repeat(mode: int) -> None:
    """When a call's own failure opens the circuit, its repeat is refused as any other call is."""
    flaky = Flaky(9)
    breakers = rung.Breakers(rung.BreakerSettings(minimum=1, rate=1.0, pause=60))
    call = both(flaky, breakers=breakers, key="api")[mode]
    with pytest.raises(rung.RungError, match="circuit 'api' is open"):
        call()
    assert flaky.calls == 1


@pytest.mark.parametrize("mode", [0, 1])
def test_slow_calls_count(mode: int) -> None:
    """With `slow` set, calls that succeed too slowly open the circuit."""
    breakers = rung.Breakers(rung.BreakerSettings(minimum=2, rate=1.0, slow=0.001))

    class Slow(Flaky):
        def __call__(self) -> str:
            time.sleep(0.003)
            return super().__call__()

    call = both(Slow(0), breakers=breakers, key="api")[mode]
    call()
    call()
    with pytest.raises(rung.RungError, match="is open"):
        call()


@pytest.mark.parametrize("mode", [0, 1])
def test_no_limit_no_budget(mode: int) -> None:
    """Without a time limit and a shared budget the short way has nothing to watch, in any thread."""
    policy = rung.policy("call", backoff={"base": 0}, seconds=None)
    flaky = Flaky(1)
    call = both(flaky, policy=policy, retry_budget=None)[mode]
    assert call() == "done"
    assert call() == "done"
    results: list[str] = []
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    thread.join()
    assert results == ["done"]


def test_unlimited_credits_and_refuses() -> None:
    """The unlimited way pays its successes back, and takes the long way when the circuit is open."""
    budget = rung.RetryBudget(500)
    budget.charge(rung.Kind.NETWORK)
    breakers = rung.Breakers(rung.BreakerSettings(minimum=1, rate=1.0))
    flaky = Flaky(1)
    policy = rung.policy("call", retries=0, seconds=None)
    call = both(flaky, policy=policy, retry_budget=budget, breakers=breakers, key="k")[0]
    with pytest.raises(ConnectionResetError):
        call()
    with pytest.raises(rung.RungError):
        call()
    breakers.get("k").restore(rung.Breakers().get("x").snapshot(0.0), 0.0)
    assert call() == "done"
    assert budget.tokens == 500 - 14 + 1


@pytest.mark.parametrize("slow", [1, 2])
def test_an_overdue_short_way_sync(slow: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the short way an overdue call, and an overdue repeat, are ended by the watchdog too."""
    monkeypatch.setattr(flat, "LOOK_EVERY", 0.01)  # else only limits of five seconds and more go this way
    calls = 0

    @rung.guarded(rung.policy("call", seconds=0.3, backoff={"base": 0}), **ports())
    def work() -> str:
        nonlocal calls
        calls += 1
        if calls == slow:
            time.sleep(20)
        if calls == 1:
            raise ConnectionResetError("x")
        return "done"

    calls = 5
    assert work() == "done"
    calls = 0
    waker = threading.Timer(0.35, interrupt.WATCHDOG.hurry, [0.0])
    waker.start()
    began = time.monotonic()
    with pytest.raises(rung.TimeUp):
        work()
    assert time.monotonic() - began < 10
    waker.join()


def test_one_that_is_overdue_does_not_disturb_another() -> None:
    """While some other attempt is being ended, a good one comes back as it was; a second look cancels nothing twice."""

    async def main() -> None:
        sweeper = timer.sweeper_here()
        task = asyncio.create_task(asyncio.sleep(30))
        timer.RUNNING["other"] = (0.0, task, 0)
        sweeper._look()
        sweeper._look()
        assert task.cancelling() == 1
        assert await rung.guarded(QUICK, **ports())(good)() == "done"
        assert timer.OVERDUE == {"other": 0}
        timer.RUNNING.clear()
        timer.OVERDUE.clear()
        await asyncio.gather(task, return_exceptions=True)

    async def good() -> str:
        return "done"

    asyncio.run(main())
