"""Several recoveries at once, and recoveries inside recoveries."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

import rung
from rung.core import events as ev
from rung.engine.fanout import Job
from rung.testing import FakeClock, HttpError, Script

ASK = rung.Request(prompt="x", model="small")
DOWN = HttpError(503, "down")


def gather(mode: str, *jobs: Any, **options: Any) -> list[rung.Outcome[Any]]:
    options = {"breakers": rung.Breakers(), "retry_budget": None, "clock": FakeClock(), **options}
    made = [job if isinstance(job, Job) else Job(job, ASK) for job in jobs]
    if mode == "sync":
        return rung.gather_sync(*made, **options)
    return asyncio.run(rung.gather(*made, **options))


modes = pytest.mark.parametrize("mode", ["sync", "async"])


@modes
def test_continue(mode: str) -> None:
    """One that fails does not disturb the others; outcomes come in the order of the jobs."""
    outcomes = gather(mode, Script("a"), Script(DOWN), Script(DOWN, "c"))
    assert [outcome.status for outcome in outcomes] == ["succeeded", "partial", "recovered"]


@modes
def test_retry_failed_only(mode: str) -> None:
    """Only those that did not succeed are started again, as often as the intensity allows."""
    good, bad, late = Script("a"), Script(HttpError(401, "no")), Script(HttpError(401, "no"), "late")
    intensity = rung.Intensity(restarts=3, seconds=60)
    outcomes = gather(mode, good, bad, late, siblings="retry_failed_only", intensity=intensity)
    assert [outcome.status for outcome in outcomes] == ["succeeded", "partial", "succeeded"]
    assert (len(good.requests), len(bad.requests), len(late.requests)) == (1, 3, 2)


def test_cancel_async() -> None:
    """The first that does not succeed stops the others at once; each has an honest outcome."""

    async def slow(request: rung.Request) -> str:
        await asyncio.sleep(30)
        return "late"

    async def bad(request: rung.Request) -> str:
        await asyncio.sleep(0.01)
        raise HttpError(401, "no")

    began = time.monotonic()
    outcomes = gather("async", slow, bad, Script("a").attempt, siblings="cancel", clock=rung.engine.run.SYSTEM_CLOCK)
    assert time.monotonic() - began < 10
    assert [outcome.status for outcome in outcomes] == ["partial", "partial", "succeeded"]
    assert isinstance(outcomes[0].events[-1], ev.Cancelled)


def test_cancel_sync() -> None:
    """In threads a sibling stops at its next wait or attempt."""
    waiting, begun = threading.Event(), threading.Event()

    def first(request: rung.Request) -> str:
        begun.wait(10)
        raise HttpError(401, "no")

    def retrying(request: rung.Request) -> str:
        begun.set()
        raise DOWN

    def never(request: rung.Request) -> str:
        waiting.wait(0.2)
        raise DOWN

    policy = rung.policy("task", backoff={"base": 30, "jitter": False}, seconds=None)
    ladder_free = policy.but(ladder=rung.policy("call").ladder)
    began = time.monotonic()
    clock = rung.engine.run.SYSTEM_CLOCK
    outcomes = gather("sync", first, retrying, never, siblings="cancel", policy=ladder_free, clock=clock)
    assert time.monotonic() - began < 10
    assert [outcome.status for outcome in outcomes] == ["failed", "partial", "partial"]
    assert {t.name for t in threading.enumerate()} <= {"MainThread", "rung-watchdog"}


def test_cancel_sync_before_the_attempt() -> None:
    """With a clock that takes no time a stopped sibling stops too, and one that never began has an outcome."""

    def slow(request: rung.Request) -> str:
        time.sleep(0.1)
        raise DOWN

    policy = rung.policy("call", seconds=None)
    outcomes = gather("sync", Script(HttpError(401, "no")), slow, siblings="cancel", policy=policy)
    assert [outcome.status for outcome in outcomes] == ["failed", "partial"]


def test_a_job_that_never_began() -> None:
    """A job stopped before its recovery began has an empty, partial outcome."""
    from rung.engine.fanout import _stopped

    outcome = _stopped(asyncio.CancelledError(), Job(Script("x"), ASK), "task", {"clock": FakeClock()})
    assert (outcome.status, outcome.attempts) == ("partial", 0)


@modes
def test_a_fault_reaches_the_caller(mode: str) -> None:
    """What is no failure of an attempt (Ctrl-C, a wrong argument) reaches the caller, and nothing stays running."""

    def pressed(request: rung.Request) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gather(mode, pressed)
    with pytest.raises(TypeError, match="unknown argument"):
        gather(mode, Script("x"), wrong=1)
    with pytest.raises(ValueError, match="maybe"):
        gather(mode, Script("x"), siblings="maybe")
    assert {t.name for t in threading.enumerate()} <= {"MainThread", "rung-watchdog"}


def test_ctrl_c_while_waiting_for_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the caller stops the jobs at their next step."""

    def stubborn(request: rung.Request) -> str:
        time.sleep(0.05)
        raise DOWN

    calls = 0
    join = threading.Thread.join

    def pressed(self: threading.Thread, timeout: float | None = None) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise KeyboardInterrupt
        join(self, timeout)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "join", pressed)
        policy = rung.policy("call", seconds=None, backoff={"base": 30, "jitter": False})
        with pytest.raises(KeyboardInterrupt):
            gather("sync", stubborn, policy=policy, clock=rung.engine.run.SYSTEM_CLOCK)
    for thread in threading.enumerate():
        if thread.name.startswith("rung-job"):
            thread.join(10)
            assert not thread.is_alive()


@modes
def test_an_inner_ladder_is_part_of_the_outer(mode: str) -> None:
    """The inner's exhaustion is the outer's failure and is not retried again; its limits are the outer's."""
    clock = FakeClock()
    ports: dict[str, Any] = {"clock": clock, "retry_budget": None, "jitter": lambda: 0.0}
    opened: list[ev.Opened] = []
    script = Script(HttpError(503, "down"))

    def note(event: ev.Event, incident: object) -> None:
        if isinstance(event, ev.Opened):
            opened.append(event)

    inner = {**ports, "policy": rung.policy("call", seconds=10_000, dollars=50.0), "listeners": [note]}

    def spend(request: rung.Request) -> Any:
        rung.spend(0.25)
        return script(request)

    def outer_sync(request: rung.Request) -> Any:
        return rung.recover_sync(spend, ASK, breakers=rung.Breakers(), **inner).unwrap()

    async def outer_async(request: rung.Request) -> Any:
        return (await rung.recover(spend, ASK, breakers=rung.Breakers(), **inner)).unwrap()

    policy = rung.policy("call", seconds=100, dollars=3.0)
    if mode == "sync":
        outcome = rung.recover_sync(outer_sync, ASK, policy=policy, breakers=rung.Breakers(), **ports)
    else:
        outcome = asyncio.run(rung.recover(outer_async, ASK, policy=policy, breakers=rung.Breakers(), **ports))
    assert len(script.requests) == 4  # the inner's own retries, not four times as many
    assert (outcome.status, outcome.attempts) == ("failed", 1)
    assert outcome.dollars == pytest.approx(1.0)
    assert (opened[0].deadline, opened[0].dollars) == (clock.now() + 100, 3.0)
    assert opened[0].parent == outcome.id


def test_limits_of_inner_and_outer() -> None:
    """Of two limits the smaller holds, whoever set it; none at all is none."""
    from rung.engine.run import _least

    assert (_least(None, None), _least(1.0, None), _least(None, 2.0), _least(3.0, 2.0)) == (None, 1.0, 2.0, 2.0)
