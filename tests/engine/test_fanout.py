"""Several recoveries side by side: what the others do when one does not succeed, and that nothing is left running."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain import events as ev
from rung.engine.gather import GatherJob, _stopped_outcome
from rung.testing import FakeClock, HttpError, Script

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rung.core.domain.incident import Incident

FAST = rung.policy("call", backoff={"base": 0})
LONG = 30.0


def alone(**ports: Any) -> dict[str, Any]:
    """Ports that share nothing with any other test."""
    return {"policy": FAST, "breakers": rung.BreakerRegistry(), "retry_budget": rung.RetryBudget(), **ports}


def job(attempt: Callable[[Any], Any], name: str = "x") -> GatherJob[Any]:
    return GatherJob(attempt, rung.Request(prompt=name))


def fan(mode: str, *attempts: Any, **ports: Any) -> list[rung.Outcome[Any]]:
    """The outcomes of these attempts, in this mode."""
    jobs = [job(attempt, f"job {n}") for n, attempt in enumerate(attempts)]
    if mode == "sync":
        return rung.gather_sync(*jobs, **alone(**ports))
    return asyncio.run(checked(*jobs, **alone(**ports)))


async def checked(*jobs: GatherJob[Any], **ports: Any) -> list[rung.Outcome[Any]]:
    """Gather, and make sure that no task is left whatever comes of it."""
    try:
        return await rung.gather(*jobs, **ports)
    finally:
        assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.fixture(params=["sync", "async"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("rung-job")]


def names(outcome: rung.Outcome[Any]) -> list[str]:
    return [type(event).__name__ for event in outcome.events]


class Ears:
    """A listener that keeps every event by the prompt of its job."""

    def __init__(self) -> None:
        self.heard: dict[str, list[ev.Event]] = {}

    def __call__(self, event: ev.Event, incident: Incident) -> None:
        assert incident.first_request is not None
        self.heard.setdefault(incident.first_request.prompt, []).append(event)


# The three ways.


@pytest.mark.parametrize("siblings", [{}, {"siblings": "continue"}], ids=["default", "said"])
def test_continue(mode: str, siblings: dict[str, str]) -> None:
    """One that fails does not disturb the others, and outcomes come in the order of the jobs."""
    scripts = [Script("a"), Script(HttpError(401)), Script(ConnectionError(), "c"), Script(HttpError(400)), Script("e")]
    outcomes = fan(mode, *scripts, **siblings)
    assert [outcome.status.value for outcome in outcomes] == ["succeeded", "failed", "recovered", "failed", "succeeded"]
    assert [outcome.value for outcome in outcomes] == ["a", None, "c", None, "e"]
    assert [len(script.requests) for script in scripts] == [1, 1, 2, 1, 1]


def test_the_order_is_the_jobs() -> None:
    """The order of the outcomes is not that in which they ended."""

    def after(steps: int) -> Callable[[Any], Any]:
        async def attempt(_: Any) -> int:
            for _step in range(steps):
                await asyncio.sleep(0)
            return steps

        return attempt

    outcomes = fan("async", after(9), after(0), after(5))
    assert [outcome.value for outcome in outcomes] == [9, 0, 5]


def test_no_jobs(mode: str) -> None:
    """Nothing to do is done at once, whatever the siblings would."""
    for siblings in ("continue", "cancel", "retry_failed_only"):
        assert fan(mode, siblings=siblings) == []


def test_an_unknown_way(mode: str) -> None:
    """A way that is none is refused before anything is attempted."""
    script = Script("never")
    with pytest.raises(ValueError, match="sideways"):
        fan(mode, script, siblings="sideways")
    assert script.requests == []


def test_cancel() -> None:
    """The first that does not succeed stops the others at once; their outcomes say how far they had come."""
    ears = Ears()
    waiting = asyncio.Event()

    async def fail(_: Any) -> None:
        await waiting.wait()
        raise HttpError(401)

    async def early(_: Any) -> str:
        return "early"

    made: list[int] = []

    async def late(_: Any) -> None:
        made.append(1)
        if len(made) == 1:
            rung.report_step("a part")
            raise ConnectionError
        waiting.set()
        await asyncio.sleep(LONG)

    outcomes = fan("async", early, late, fail, siblings="cancel", listeners=[ears])
    assert [outcome.status.value for outcome in outcomes] == ["succeeded", "partial", "failed"]
    assert names(outcomes[1]) == ["Opened", "StepCompleted", "AttemptFailed", "Decided", "Cancelled"]
    assert outcomes[1].steps == ("a part",)
    assert outcomes[1].attempts == 1
    assert ears.heard["job 1"] == list(outcomes[1].events)  # and told once


def test_cancel_when_all_succeed(mode: str) -> None:
    """Where all succeed nothing is cancelled."""
    outcomes = fan(mode, Script("a"), Script(ConnectionError(), "b"), siblings="cancel")
    assert [outcome.value for outcome in outcomes] == ["a", "b"]


def test_cancelled_and_good_all_the_same() -> None:
    """A sibling that comes to its end although it was told to stop has its own outcome."""
    waiting = asyncio.Event()

    async def fail(_: Any) -> None:
        await waiting.wait()
        raise HttpError(401)

    async def stubborn(_: Any) -> str:
        waiting.set()
        try:
            await asyncio.sleep(LONG)
        except asyncio.CancelledError:
            return "good"
        raise AssertionError

    outcomes = fan("async", fail, stubborn, siblings="cancel")
    assert [outcome.status.value for outcome in outcomes] == ["failed", "succeeded"]
    assert outcomes[1].value == "good"


def test_cancelled_and_worse() -> None:
    """What a sibling raises that is no failure, when it is told to stop, reaches the caller."""

    class Leave(BaseException):
        pass

    waiting = asyncio.Event()

    async def fail(_: Any) -> None:
        await waiting.wait()
        raise HttpError(401)

    async def leave(_: Any) -> None:
        waiting.set()
        try:
            await asyncio.sleep(LONG)
        finally:
            raise Leave

    with pytest.raises(Leave):
        fan("async", fail, leave, siblings="cancel")


def test_cancel_threads() -> None:
    """In threads a sibling is woken from its wait and stops; it has an outcome, and is told of once."""
    ears = Ears()
    waiting = threading.Event()

    def fail(_: Any) -> None:
        assert waiting.wait(LONG)
        raise HttpError(401)

    def late(_: Any) -> None:
        raise ConnectionError

    def heard(event: ev.Event, incident: Incident) -> None:
        ears(event, incident)
        if isinstance(event, ev.Decided) and isinstance(event.decision, ev.Repeat):
            waiting.set()

    policy = rung.policy("call", backoff={"base": LONG, "jitter": False})
    outcomes = fan("sync", fail, late, siblings="cancel", policy=policy, listeners=[heard])
    assert [outcome.status.value for outcome in outcomes] == ["failed", "partial"]
    assert names(outcomes[1]) == ["Opened", "AttemptFailed", "Decided", "Cancelled"]
    assert ears.heard["job 1"] == list(outcomes[1].events)


class Blocking(FakeClock):
    """A clock on which a job waits until the one before it has ended."""

    def until_the_first_has_ended(self) -> None:
        if threading.current_thread().name == "rung-job-1":
            for thread in threading.enumerate():
                if thread.name == "rung-job-0":
                    thread.join()


def test_cancel_threads_before_they_began() -> None:
    """A sibling that had not begun when it was told to stop makes no attempt, and has an outcome."""

    class Clock(Blocking):
        def now(self) -> float:
            self.until_the_first_has_ended()
            return super().now()

    script = Script("never")
    outcomes = fan("sync", Script(HttpError(401)), script, siblings="cancel", clock=Clock())
    assert [outcome.status.value for outcome in outcomes] == ["failed", "partial"]
    assert script.requests == []
    assert names(outcomes[1]) == ["Opened", "Cancelled"]
    assert outcomes[1].attempts == 0


def test_cancel_threads_on_any_clock() -> None:
    """A sibling that waits on a clock of the caller's stops when that wait is over."""

    class Clock(Blocking):
        def sleep(self, seconds: float) -> None:
            self.until_the_first_has_ended()
            super().sleep(seconds)

    failed = threading.Event()

    def fail(_: Any) -> None:
        assert failed.wait(LONG)
        raise HttpError(401)

    def late(_: Any) -> None:
        failed.set()
        raise ConnectionError

    policy = rung.policy("call", backoff={"base": 4, "jitter": False})
    clock = Clock()
    outcomes = fan("sync", fail, late, siblings="cancel", policy=policy, clock=clock)
    assert names(outcomes[1]) == ["Opened", "AttemptFailed", "Decided", "Cancelled"]
    assert clock.sleeps == [4.0]


def test_clock_of_a_job_passes_everything_on() -> None:
    """A job on threads that is not stopped waits as long as it should."""
    clock = FakeClock()
    policy = rung.policy("call", backoff={"base": 4, "jitter": False})
    (outcome,) = fan("sync", Script(ConnectionError(), ConnectionError(), "c"), policy=policy, clock=clock)
    assert outcome.value == "c"
    assert clock.sleeps == [4.0, 8.0]
    assert outcome.seconds == 12.0


def test_retry_failed_only(mode: str) -> None:
    """Those that did not succeed are started again when all have ended, and only those."""
    good, bad = Script("a"), Script(HttpError(400), HttpError(400), "b")
    outcomes = fan(mode, good, bad, siblings="retry_failed_only", clock=FakeClock())
    assert [outcome.value for outcome in outcomes] == ["a", "b"]
    assert (len(good.requests), len(bad.requests)) == (1, 3)


@pytest.mark.parametrize(("restarts", "attempts"), [(0, 3), (2, 5), (4, 7), (7, 10)])
def test_intensity(mode: str, restarts: int, attempts: int) -> None:
    """No more jobs are started again than the intensity allows, over all of them."""
    scripts = [Script(HttpError(400)) for _ in range(3)]
    intensity = rung.policies.RestartIntensity(restarts=restarts, seconds=60)
    outcomes = fan(mode, *scripts, siblings="retry_failed_only", intensity=intensity, clock=FakeClock())
    assert [outcome.status.value for outcome in outcomes] == ["failed"] * 3
    assert sum(len(script.requests) for script in scripts) == attempts


def test_intensity_over_time(mode: str) -> None:
    """What was started again long ago does not count."""
    clock = FakeClock()

    def slow(_: Any) -> Any:
        clock.advance(40)
        return HttpError(400)

    script = Script(slow, slow, slow, slow, "good")
    intensity = rung.policies.RestartIntensity(restarts=2, seconds=60)
    attempt = script if mode == "sync" else script.attempt
    (outcome,) = fan(mode, attempt, siblings="retry_failed_only", intensity=intensity, clock=clock)
    assert outcome.value == "good"


def test_a_job_that_never_began() -> None:
    """A job that was cancelled before it could begin has an outcome, and it is an empty one."""
    outcome = _stopped_outcome(asyncio.CancelledError(), job(Script("never")), "call", {})
    assert outcome.status is rung.Status.PARTIAL
    assert names(outcome) == ["Opened", "Cancelled"]
    assert outcome.attempts == 0


# What is no failure.


def test_a_bug_in_a_changer(mode: str) -> None:
    """A changer that breaks is recorded in its own job's outcome, and the rung is passed over."""

    def plan(_request: rung.Request, _incident: Incident) -> rung.Request:
        raise ZeroDivisionError("in the planner")

    policy = rung.policy("task", backoff={"base": 0})
    misaligned = rung.AttemptError("not that", finding="goal_misaligned")
    outcomes = fan(mode, Script("a"), Script(misaligned), policy=policy, rung_handlers={"replan": plan})
    assert outcomes[0].ok
    assert [event.reason for event in outcomes[1].events if isinstance(event, ev.Skipped)] == [
        "replan raised ZeroDivisionError: in the planner"
    ]


@pytest.mark.parametrize("siblings", ["continue", "cancel", "retry_failed_only"])
def test_ctrl_c_in_a_job(mode: str, siblings: str) -> None:
    """Ctrl-C in one job reaches the caller, and the others are not left running."""
    others: list[str] = []

    def interrupt(_: Any) -> None:
        raise KeyboardInterrupt

    async def wait(_: Any) -> None:
        try:
            await asyncio.sleep(LONG)
        except asyncio.CancelledError:
            others.append("cancelled")
            raise

    other = Script(ConnectionError(), "b") if mode == "sync" else wait
    with pytest.raises(KeyboardInterrupt):
        fan(mode, other, interrupt, siblings=siblings)
    assert others == ([] if mode == "sync" else ["cancelled"])


def test_a_wrong_argument(mode: str) -> None:
    """A mistake of the caller's is raised in the caller, and nothing is attempted."""
    script = Script("never")
    with pytest.raises(TypeError, match="'lisener'"):
        fan(mode, script, script, lisener=1)
    assert script.requests == []


def test_the_caller_is_cancelled() -> None:
    """A cancellation of the caller passes to all jobs, and on, when they have ended."""
    begun = asyncio.Barrier(3)
    ended: list[str] = []

    async def wait(_: Any) -> None:
        await begun.wait()
        try:
            await asyncio.sleep(LONG)
        finally:
            await asyncio.sleep(0)
            ended.append("x")

    async def main() -> None:
        task = asyncio.create_task(rung.gather(job(wait), job(wait), **alone()))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == ["x", "x"]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_ctrl_c_in_the_caller_of_threads() -> None:
    """Ctrl-C in the caller passes at once, and the threads end at their next wait or attempt."""
    waiting = threading.Event()
    release = threading.Event()
    made: list[str] = []

    def block(_: Any) -> None:
        made.append("x")
        waiting.set()
        release.wait(LONG)
        raise ConnectionError

    def stop() -> None:
        waiting.wait(LONG)
        os.kill(os.getpid(), signal.SIGINT)

    stopper = threading.Thread(target=stop)
    stopper.start()
    with pytest.raises(KeyboardInterrupt):
        fan("sync", block)
    stopper.join()
    release.set()
    end = time.monotonic() + LONG
    while [thread for thread in threading.enumerate() if thread.name.startswith("rung-job")]:
        assert time.monotonic() < end  # a join that was interrupted once does not wait any more in Python 3.11
        time.sleep(0.001)
    assert made == ["x"]
