"""Several recoveries side by side, and what the others do when one of them does not succeed."""

from __future__ import annotations

import threading
from contextvars import copy_context
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.policy.restart_intensity import RestartIntensity, SiblingRestarts
from rung.engine.loop.run import SYSTEM_CLOCK
from rung.engine.recover import new_run, recover, recover_sync

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Unpack

    from rung.core.domain.outcome import Outcome
    from rung.core.domain.request import Request
    from rung.core.policy.policy import Policy
    from rung.engine.ports import Clock
    from rung.engine.recover import Ports

_LOOK_EVERY: Final = 0.5
DEFAULT_INTENSITY: Final = RestartIntensity()


class GatherJob(NamedTuple):
    """One attempt and the request it is given."""

    attempt: Callable[[Request], Any]
    request: Request


async def gather(
    *jobs: GatherJob,
    policy: Policy | str = "task",
    siblings: SiblingRestarts | str = SiblingRestarts.CONTINUE,
    intensity: RestartIntensity = DEFAULT_INTENSITY,
    **ports: Unpack[Ports],
) -> list[Outcome[Any]]:
    """Recover all of them at once; outcomes come in the order of the jobs.

    siblings: `continue` lets the others finish; `cancel` stops them at once; `retry_failed_only` starts
    those that did not succeed again when all have ended, as often as the intensity allows.
    """
    import asyncio

    siblings = SiblingRestarts(siblings)
    outcomes: dict[int, Outcome[Any]] = {}
    for round_ in _rounds(jobs, outcomes, siblings, intensity, ports.get("clock", SYSTEM_CLOCK)):
        tasks = {asyncio.create_task(recover(*jobs[n], policy=policy, **ports)): n for n in round_}
        try:
            await _collect(tasks, outcomes, cancel=siblings is SiblingRestarts.CANCEL)
        finally:
            stragglers = [task for task in tasks if not task.done()]
            for task in stragglers:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in stragglers:
            try:
                outcomes[tasks[task]] = task.result()  # it may have ended all the same
            except asyncio.CancelledError as error:
                outcomes[tasks[task]] = _stopped(error, jobs[tasks[task]], policy, ports)
    return [outcomes[n] for n in range(len(jobs))]


async def _collect(tasks: Mapping[asyncio.Task[Any], int], outcomes: dict[int, Any], *, cancel: bool) -> None:
    """Take in outcomes as they come; with `cancel`, only up to the first that is not good."""
    import asyncio

    waiting = set(tasks)
    while waiting:
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            outcomes[tasks[task]] = task.result()
        if cancel and any(not outcome.ok for outcome in outcomes.values()):
            return


def gather_sync(
    *jobs: GatherJob,
    policy: Policy | str = "task",
    siblings: SiblingRestarts | str = SiblingRestarts.CONTINUE,
    intensity: RestartIntensity = DEFAULT_INTENSITY,
    **ports: Unpack[Ports],
) -> list[Outcome[Any]]:
    """The same with a thread for each job. A cancelled sibling stops at its next wait or attempt."""
    siblings = SiblingRestarts(siblings)
    outcomes: dict[int, Outcome[Any]] = {}
    clock: Clock = ports.get("clock", SYSTEM_CLOCK)
    broken: list[BaseException] = []
    for round_ in _rounds(jobs, outcomes, siblings, intensity, clock):
        stop = threading.Event()
        equipped: Ports = {**ports, "clock": _Stoppable(clock, stop)}

        def work(n: int, stop: threading.Event = stop, ports: Ports = equipped) -> None:
            try:
                outcomes[n] = recover_sync(_unless(stop, jobs[n].attempt), jobs[n].request, policy=policy, **ports)
            except _StopRequest as stopped:
                outcomes[n] = _stopped(stopped, jobs[n], policy, ports)
            except BaseException as error:  # a fault of ours or the user's: raised again in the caller
                broken.append(error)
            if broken or (siblings is SiblingRestarts.CANCEL and not outcomes[n].ok):
                stop.set()

        # Each in the caller's context, so that a recovery it is part of still bounds it.
        threads = [Thread(target=copy_context().run, args=(work, n), name=f"rung-job-{n}") for n in round_]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():  # a Ctrl-C that comes just as a join begins would wait for its end
                    thread.join(_LOOK_EVERY)
        except BaseException:
            stop.set()
            raise
        if broken:
            raise broken[0]
    return [outcomes[n] for n in range(len(jobs))]


def _rounds(
    jobs: Sequence[GatherJob],
    outcomes: Mapping[int, Outcome[Any]],
    siblings: SiblingRestarts,
    intensity: RestartIntensity,
    clock: Clock,
) -> Iterator[list[int]]:
    """All jobs first; then, where that is wanted, those that did not succeed, within the intensity."""
    yield list(range(len(jobs)))
    restarts: list[float] = []
    while siblings is SiblingRestarts.RETRY_FAILED_ONLY:
        now = clock.now()
        failed = [n for n, outcome in sorted(outcomes.items()) if not outcome.ok]
        again = failed[: intensity.remaining(restarts, now)]
        if not again:
            return
        restarts += [now] * len(again)
        yield again


class _StopRequest(BaseException):
    """Ends a sibling from inside; passes through its loop as a cancellation does."""


class _Stoppable:
    """A clock that wakes up, and stops the sleeper, when the siblings are to stop."""

    def __init__(self, clock: Clock, stop: threading.Event) -> None:
        self.clock = clock
        self.stop = stop
        self.now = clock.now
        self.asleep = clock.asleep

    def sleep(self, seconds: float) -> None:
        if self.clock is SYSTEM_CLOCK:
            self.stop.wait(seconds)
        else:
            self.clock.sleep(seconds)
        if self.stop.is_set():
            raise _StopRequest


def _unless(stop: threading.Event, attempt: Callable[[Request], Any]) -> Callable[[Request], Any]:
    def unless_stopped(request: Request) -> Any:
        if stop.is_set():
            raise _StopRequest
        return attempt(request)

    return unless_stopped


def _stopped(error: BaseException, job: GatherJob, policy: Policy | str, ports: Ports) -> Outcome[Any]:
    """The outcome of a job that was stopped; one that never began has an empty one."""
    outcome: Outcome[Any] | None = error.__dict__.get("__rung_outcome__")
    if outcome is not None:
        return outcome
    run = new_run(job.request, policy, ports)
    run.stopped()
    return run.outcome()
