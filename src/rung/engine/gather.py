"""Concurrent recoveries, and what happens to the others when one does not succeed."""

from __future__ import annotations

import threading
from contextvars import copy_context
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar, cast, overload

from rung.core.domain.errors import ConfigError
from rung.core.policy.restart_intensity import RestartIntensity, SiblingRestarts
from rung.engine.default_journal import with_default_journal
from rung.engine.durable import recovery
from rung.engine.loop.run_factory import new_run
from rung.engine.ports.clock import SYSTEM_CLOCK
from rung.engine.ports.durable_runs import DurableJournal
from rung.engine.recover import check_call, chosen_policy, recover, recover_sync

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
    from typing import Unpack

    from rung.core.domain.outcome import Outcome
    from rung.core.domain.request import Request
    from rung.core.policy.policy import Policy
    from rung.engine.ports.clock import Clock
    from rung.engine.recovery_arguments import Ports, RunPorts

_JOIN_POLL_SECONDS: Final = 0.5
DEFAULT_INTENSITY: Final = RestartIntensity()
T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)  # what an attempt returns: its value, or an awaitable of it


class GatherJob(NamedTuple, Generic[R_co]):
    """One job of `rung.gather`.

    Attributes:
        attempt: Function that makes one attempt, as for `rung.recover`.
        request: What to attempt: a `rung.Request`, or a prompt.
    """

    attempt: Callable[[Request], R_co]
    request: Request | str


@overload
async def gather(
    *jobs: GatherJob[Awaitable[T]],
    policy: Policy | str | None = None,
    siblings: SiblingRestarts | str = SiblingRestarts.CONTINUE,
    intensity: RestartIntensity = DEFAULT_INTENSITY,
    run_id: str = "",
    **ports: Unpack[Ports],
) -> list[Outcome[T]]: ...
@overload
async def gather(
    *jobs: GatherJob[T],
    policy: Policy | str | None = None,
    siblings: SiblingRestarts | str = SiblingRestarts.CONTINUE,
    intensity: RestartIntensity = DEFAULT_INTENSITY,
    run_id: str = "",
    **ports: Unpack[Ports],
) -> list[Outcome[T]]: ...
async def gather(
    *jobs: GatherJob[Any],
    policy: Policy | str | None = None,
    siblings: SiblingRestarts | str = SiblingRestarts.CONTINUE,
    intensity: RestartIntensity = DEFAULT_INTENSITY,
    run_id: str = "",
    **ports: Unpack[Ports],
) -> list[Outcome[Any]]:
    """Recover several jobs concurrently and return their outcomes in the order of the jobs.

    Args:
        jobs: `rung.GatherJob(attempt, request)` for each recovery.
        policy: `rung.Policy`, or the name of a ladder, for all jobs. Default: as for `rung.recover`.
        siblings: What happens to the others when one job does not succeed: `continue` lets them finish, `cancel` stops them,
            `retry_failed_only` restarts the failed ones when all have ended. Default: `continue`.
        intensity: How many jobs `retry_failed_only` may restart in which time. Default: 3 in 60 seconds.
        run_id: With a journal, makes each job a durable run, `RUN_ID/NUMBER`: called again with the same jobs, the jobs that
            ended return their outcomes, and the others continue. Default: the jobs are not durable.
        **ports: Keyword arguments of `rung.recover`, for all jobs.

    Returns:
        One outcome for each job.

    Raises:
        TypeError: A job or an argument has the wrong type. Nothing has run then.
        ConfigError: `run_id` is given without a journal that has durable runs.

    Example:
        >>> import asyncio, rung
        >>> async def attempt(request: rung.Request) -> str:
        ...     return request.prompt.upper()
        >>> jobs = [rung.GatherJob(attempt, "a"), rung.GatherJob(attempt, "b")]
        >>> [outcome.value for outcome in asyncio.run(rung.gather(*jobs))]
        ['A', 'B']
    """
    import asyncio

    _check_jobs(jobs, policy, ports, blocking=False)
    ports = with_default_journal(ports)
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
    *jobs: GatherJob[T],
    policy: Policy | str | None = None,
    siblings: SiblingRestarts | str = SiblingRestarts.CONTINUE,
    intensity: RestartIntensity = DEFAULT_INTENSITY,
    run_id: str = "",
    **ports: Unpack[Ports],
) -> list[Outcome[T]]:
    """Recover several jobs concurrently, each in a thread, and return their outcomes in the order of the jobs.

    A sibling that is cancelled stops at its next wait or attempt.

    Args:
        jobs: `rung.GatherJob(attempt, request)` for each recovery.
        policy: `rung.Policy`, or the name of a ladder, for all jobs. Default: as for `rung.recover`.
        siblings: What happens to the others when one job does not succeed: `continue` lets them finish, `cancel` stops them,
            `retry_failed_only` restarts the failed ones when all have ended. Default: `continue`.
        intensity: How many jobs `retry_failed_only` may restart in which time. Default: 3 in 60 seconds.
        run_id: With a journal, makes each job a durable run, `RUN_ID/NUMBER`: called again with the same jobs, the jobs that
            ended return their outcomes, and the others continue. Default: the jobs are not durable.
        **ports: Keyword arguments of `rung.recover`, for all jobs.

    Returns:
        One outcome for each job.

    Raises:
        TypeError: A job or an argument has the wrong type. Nothing has run then.
        ConfigError: `run_id` is given without a journal that has durable runs.
    """
    _check_jobs(jobs, policy, ports, blocking=True)
    ports = with_default_journal(ports)
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


async def _recover(job: GatherJob[Any], policy: Policy | str, run_id: str, ports: Ports) -> Outcome[Any]:
    if not run_id:
        return await recover(*job, policy=policy, **ports)
    journal, rest = _durable_ports(ports)
    return await recovery.recover(*job, run_id=run_id, journal=journal, policy=policy, **rest)


def _recover_sync(job: GatherJob[Any], policy: Policy | str, run_id: str, ports: Ports) -> Outcome[Any]:
    if not run_id:
        return recover_sync(*job, policy=policy, **ports)
    journal, rest = _durable_ports(ports)
    return recovery.recover_sync(*job, run_id=run_id, journal=journal, policy=policy, **rest)


def _rounds(
    jobs: Sequence[GatherJob[Any]],
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


def _stopped_outcome(error: BaseException, job: GatherJob[Any], policy: Policy | str, ports: Ports) -> Outcome[Any]:
    """Return the outcome of a stopped job. A job that never started has an empty one."""
    outcome: Outcome[Any] | None = error.__dict__.get("__rung_outcome__")
    if outcome is not None:
        return outcome
    run = new_run(job.request, policy, ports)
    run.record_cancelled()
    return run.outcome()
