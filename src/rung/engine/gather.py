"""Concurrent recoveries, and what happens to the others when one does not succeed."""

from __future__ import annotations

import threading
from contextvars import copy_context
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from rung.core.domain.errors import ConfigError
from rung.core.policy.restart_intensity import RestartIntensity, SiblingRestarts
from rung.engine.durable import recovery
from rung.engine.loop.run import SYSTEM_CLOCK
from rung.engine.ports import DurableJournal
from rung.engine.recover import check_call, chosen_policy, new_run, recover, recover_sync

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Unpack

    from rung.core.domain.outcome import Outcome
    from rung.core.domain.request import Request
    from rung.core.policy.policy import Policy
    from rung.engine.ports import Clock
    from rung.engine.recover import Ports, RunPorts

_JOIN_POLL_SECONDS: Final = 0.5
DEFAULT_INTENSITY: Final = RestartIntensity()


class GatherJob(NamedTuple):
    """One attempt and the request it is given."""

    attempt: Callable[[Request], Any]
    request: Request


async def gather(
    *jobs: GatherJob,
    policy: Policy | str | None = None,
    siblings: SiblingRestarts | str = SiblingRestarts.CONTINUE,
    intensity: RestartIntensity = DEFAULT_INTENSITY,
    run_id: str = "",
    **ports: Unpack[Ports],
) -> list[Outcome[Any]]:
    """Recover all jobs concurrently. Return their outcomes in the order of the jobs.

    siblings: `continue` lets the others finish; `cancel` cancels them at once; `retry_failed_only` restarts the failed
    ones when all have ended, as often as the restart intensity allows.
    run_id: with a journal, each job is a durable run of its own, `RUN_ID/NUMBER`. Called again with the same jobs, the
    jobs that ended return their outcomes, and the others continue.
    """
    import asyncio

    _check_jobs(jobs, policy, ports, blocking=False)
    policy = chosen_policy(policy, ports.get("journal"))
    siblings = SiblingRestarts(siblings)
    run_ids = _RunIds(run_id, ports)
    outcomes: dict[int, Outcome[Any]] = {}
    for job_numbers in _rounds(jobs, outcomes, siblings, intensity, ports.get("clock", SYSTEM_CLOCK)):
        tasks = {asyncio.create_task(_recover(jobs[n], policy, run_ids.next(n), ports)): n for n in job_numbers}
        try:
            await _collect(tasks, outcomes, cancel=siblings is SiblingRestarts.CANCEL)
        finally:
            stragglers = [task for task in tasks if not task.done()]
            for task in stragglers:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in stragglers:
            try:
                outcomes[tasks[task]] = task.result()  # it may have finished before the cancellation
            except asyncio.CancelledError as error:
                outcomes[tasks[task]] = _stopped_outcome(error, jobs[tasks[task]], policy, ports)
    return [outcomes[n] for n in range(len(jobs))]


async def _collect(tasks: Mapping[asyncio.Task[Any], int], outcomes: dict[int, Any], *, cancel: bool) -> None:
    """Collect outcomes as tasks finish. With `cancel`, return after the first outcome that is not a success."""
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
    policy: Policy | str | None = None,
    siblings: SiblingRestarts | str = SiblingRestarts.CONTINUE,
    intensity: RestartIntensity = DEFAULT_INTENSITY,
    run_id: str = "",
    **ports: Unpack[Ports],
) -> list[Outcome[Any]]:
    """Recover all jobs concurrently, each in a thread. A cancelled sibling stops at its next wait or attempt."""
    _check_jobs(jobs, policy, ports, blocking=True)
    policy = chosen_policy(policy, ports.get("journal"))
    siblings = SiblingRestarts(siblings)
    run_ids = _RunIds(run_id, ports)
    outcomes: dict[int, Outcome[Any]] = {}
    clock: Clock = ports.get("clock", SYSTEM_CLOCK)
    errors: list[BaseException] = []
    for job_numbers in _rounds(jobs, outcomes, siblings, intensity, clock):
        stop = threading.Event()
        job_ports: Ports = {**ports, "clock": _StoppableClock(clock, stop)}

        names = {n: run_ids.next(n) for n in job_numbers}

        def work(
            n: int, stop: threading.Event = stop, ports: Ports = job_ports, names: Mapping[int, str] = names
        ) -> None:
            try:
                attempt = _stoppable_attempt(stop, jobs[n].attempt)
                outcomes[n] = _recover_sync(GatherJob(attempt, jobs[n].request), policy, names[n], ports)
            except _StopRequest as stopped:
                outcomes[n] = _stopped_outcome(stopped, jobs[n], policy, ports)
            except BaseException as error:  # not a failure of the attempt: raised again in the caller
                errors.append(error)
            if errors or (siblings is SiblingRestarts.CANCEL and not outcomes[n].ok):
                stop.set()

        # Each thread has the caller's context, so that the limits of an enclosing recovery apply.
        threads = [Thread(target=copy_context().run, args=(work, n), name=f"rung-job-{n}") for n in job_numbers]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():  # in slices: Ctrl-C at the start of a join would be delayed until its end
                    thread.join(_JOIN_POLL_SECONDS)
        except BaseException:
            stop.set()
            raise
        if errors:
            raise errors[0]
    return [outcomes[n] for n in range(len(jobs))]


def _check_jobs(jobs: Sequence[Any], policy: Any, ports: Mapping[str, Any], *, blocking: bool) -> None:
    """Refuse misuse in any of the jobs before the first one starts."""
    for number, job in enumerate(jobs):
        if not isinstance(job, tuple) or len(job) != len(GatherJob._fields):
            raise TypeError(f"job {number}: must be a rung.GatherJob, not {type(job).__name__}")
        try:
            check_call(job[0], job[1], policy, ports, blocking=blocking)
        except TypeError as error:
            raise TypeError(f"job {number}: {error}") from None


class _RunIds:
    """Run ids of the jobs. A restarted job is a new run, because a run that has ended is not repeated."""

    def __init__(self, run_id: str, ports: Ports) -> None:
        if not isinstance(run_id, str):
            raise ConfigError("run_id", run_id, "a string")
        if run_id and not isinstance(ports.get("journal"), DurableJournal):
            raise ConfigError("journal", ports.get("journal"), "a journal with durable runs (rung.journal(PATH))")
        self._run_id = run_id
        self._starts: dict[int, int] = {}

    def next(self, job: int) -> str:
        """Return the id of a job's next run; empty for a recovery that is not durable."""
        self._starts[job] = starts = self._starts.get(job, 0) + 1
        return f"{self._run_id}/{job}{f'~{starts}' * (starts > 1)}" if self._run_id else ""


def _durable_ports(ports: Ports) -> tuple[DurableJournal, RunPorts]:
    rest = {name: port for name, port in ports.items() if name != "journal"}
    return cast("DurableJournal", ports.get("journal")), cast("RunPorts", rest)


async def _recover(job: GatherJob, policy: Policy | str, run_id: str, ports: Ports) -> Outcome[Any]:
    if not run_id:
        return await recover(*job, policy=policy, **ports)
    journal, rest = _durable_ports(ports)
    return await recovery.recover(*job, run_id=run_id, journal=journal, policy=policy, **rest)


def _recover_sync(job: GatherJob, policy: Policy | str, run_id: str, ports: Ports) -> Outcome[Any]:
    if not run_id:
        return recover_sync(*job, policy=policy, **ports)
    journal, rest = _durable_ports(ports)
    return recovery.recover_sync(*job, run_id=run_id, journal=journal, policy=policy, **rest)


def _rounds(
    jobs: Sequence[GatherJob],
    outcomes: Mapping[int, Outcome[Any]],
    siblings: SiblingRestarts,
    intensity: RestartIntensity,
    clock: Clock,
) -> Iterator[list[int]]:
    """Yield all jobs, then with `retry_failed_only` the failed ones, within the restart intensity."""
    yield list(range(len(jobs)))
    restarts: list[float] = []
    while siblings is SiblingRestarts.RETRY_FAILED_ONLY:
        now = clock.now()
        failed = [n for n, outcome in sorted(outcomes.items()) if not outcome.ok]
        to_restart = failed[: intensity.remaining(restarts, now)]
        if not to_restart:
            return
        restarts += [now] * len(to_restart)
        yield to_restart


class _StopRequest(BaseException):
    """Raised inside a sibling to stop it. Propagates through its recovery like a cancellation."""


class _StoppableClock:
    """Clock whose sleep ends with a stop request when the siblings are cancelled."""

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


def _stoppable_attempt(stop: threading.Event, attempt: Callable[[Request], Any]) -> Callable[[Request], Any]:
    def attempt_unless_stopped(request: Request) -> Any:
        if stop.is_set():
            raise _StopRequest
        return attempt(request)

    return attempt_unless_stopped


def _stopped_outcome(error: BaseException, job: GatherJob, policy: Policy | str, ports: Ports) -> Outcome[Any]:
    """Return the outcome of a stopped job. A job that never started has an empty one."""
    outcome: Outcome[Any] | None = error.__dict__.get("__rung_outcome__")
    if outcome is not None:
        return outcome
    run = new_run(job.request, policy, ports)
    run.record_cancelled()
    return run.outcome()
