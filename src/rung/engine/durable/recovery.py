"""Durable recoveries: every attempt is a recorded step, and a finished attempt is never made again after a crash."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar, overload

from rung.core.domain.errors import ConfigError, RungError
from rung.engine.durable.attempt_replay import DurableRecovery
from rung.engine.loop.run_factory import new_run
from rung.engine.loop.run_to_end import arun_to_end, finish_run, run_to_end
from rung.engine.ports.durable_runs import DurableJournal
from rung.engine.recover import check_call, chosen_policy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Unpack

    from rung.core.domain.events import Event
    from rung.core.domain.outcome import Outcome
    from rung.core.domain.request import Request
    from rung.core.policy.policy import Policy
    from rung.core.recovery.resume_point import ResumePoint
    from rung.engine.loop.run import RecoveryRun
    from rung.engine.ports.durable_runs import RunLease
    from rung.engine.recovery_arguments import RunPorts

T = TypeVar("T")


@overload
async def recover(
    attempt: Callable[[Request], Awaitable[T]],
    request: Request | str,
    *,
    run_id: str,
    journal: DurableJournal,
    policy: Policy | str | None = None,
    close_when_stopped: bool = False,
    **ports: Unpack[RunPorts],
) -> Outcome[T]: ...
@overload
async def recover(
    attempt: Callable[[Request], T],
    request: Request | str,
    *,
    run_id: str,
    journal: DurableJournal,
    policy: Policy | str | None = None,
    close_when_stopped: bool = False,
    **ports: Unpack[RunPorts],
) -> Outcome[T]: ...
async def recover(
    attempt: Callable[[Request], Any],
    request: Request | str,
    *,
    run_id: str,
    journal: DurableJournal,
    policy: Policy | str | None = None,
    close_when_stopped: bool = False,
    **ports: Unpack[RunPorts],
) -> Outcome[Any]:
    """Attempt a request with recovery that survives its process: every attempt is a recorded step.

    A finished attempt is never made again. One that was running when the process died may run twice, if the request is
    idempotent.

    Args:
        attempt: Function that makes one attempt, as for `rung.recover`. Its value must be JSON serializable.
        request: What to attempt: a `rung.Request`, or a prompt.
        run_id: Name of the run. Called again with the same name, it continues where it stopped; for a run that has ended, the
            recorded outcome is returned.
        journal: Journal with durable runs, from `rung.journal(PATH)`.
        policy: `rung.Policy`, or the name of a ladder. Default: the policy of the journal's project.
        close_when_stopped: Whether a run that is cancelled or stopped by Ctrl-C ends. Default: False, it stays open.
        **ports: The other keyword arguments of `rung.recover`.

    Raises:
        ConfigError: `run_id` is empty, or the journal has no durable runs.
        RunOwnedElsewhere: Another live process runs it.
    """
    from asyncio import to_thread

    check_call(attempt, request, policy, ports, blocking=False)
    claim, events = await to_thread(_claim, run_id, journal)
    run, durable = await to_thread(
        _open_run, claim, request, policy, journal, ports, close_when_stopped=close_when_stopped
    )
    if claim.done is not None:
        return durable.outcome_of_ended_run(events)
    with claim:
        at = _resume(durable, events)
        if at is not None:
            await arun_to_end(run, durable.areplaying(attempt), at.failure, at.decision, at.wait)
        return await to_thread(durable.finish, finish_run(run))


def recover_sync(
    attempt: Callable[[Request], T],
    request: Request | str,
    *,
    run_id: str,
    journal: DurableJournal,
    policy: Policy | str | None = None,
    close_when_stopped: bool = False,
    **ports: Unpack[RunPorts],
) -> Outcome[T]:
    """Attempt a request with recovery that survives its process; blocking.

    A finished attempt is never made again. One that was running when the process died may run twice, if the request is
    idempotent.

    Args:
        attempt: Function that makes one attempt, as for `rung.recover`. Its value must be JSON serializable.
        request: What to attempt: a `rung.Request`, or a prompt.
        run_id: Name of the run. Called again with the same name, it continues where it stopped; for a run that has ended, the
            recorded outcome is returned.
        journal: Journal with durable runs, from `rung.journal(PATH)`.
        policy: `rung.Policy`, or the name of a ladder. Default: the policy of the journal's project.
        close_when_stopped: Whether a run that is cancelled or stopped by Ctrl-C ends. Default: False, it stays open.
        **ports: The other keyword arguments of `rung.recover`.

    Raises:
        ConfigError: `run_id` is empty, or the journal has no durable runs.
        RunOwnedElsewhere: Another live process runs it.
    """
    check_call(attempt, request, policy, ports, blocking=True)
    claim, events = _claim(run_id, journal)
    run, durable = _open_run(claim, request, policy, journal, ports, close_when_stopped=close_when_stopped)
    if claim.done is not None:
        return durable.outcome_of_ended_run(events)
    with claim:
        at = _resume(durable, events)
        if at is not None:
            run_to_end(run, durable.replaying(attempt), at.failure, at.decision, at.wait)
        return durable.finish(finish_run(run))


def _claim(run_id: str, journal: DurableJournal) -> tuple[RunLease, Sequence[Event]]:
    """Acquire the lease on a run. Return it with the events so far."""
    if not isinstance(run_id, str) or not run_id:
        raise ConfigError("run_id", run_id, "a non-empty string")
    if not isinstance(journal, DurableJournal):
        raise ConfigError("journal", journal, "a journal with durable runs (rung.journal(PATH))")
    return journal.runs.claim(run_id), journal.events(run_id)


def _open_run(
    claim: RunLease,
    request: Request | str,
    policy: Policy | str | None,
    journal: DurableJournal,
    ports: RunPorts,
    *,
    close_when_stopped: bool,
) -> tuple[RecoveryRun, DurableRecovery]:
    try:
        run = new_run(request, chosen_policy(policy, journal), {**ports, "journal": claim}, claim.run)
        durable = DurableRecovery(claim, run)
    except Exception:
        _give_back(claim)
        raise
    run.journal = run.attempt_recorder = durable
    run.log_name = claim.run
    run.stays_open = not close_when_stopped
    return run, durable


def _resume(durable: DurableRecovery, events: Sequence[Event]) -> ResumePoint | None:
    try:
        return durable.resume(events)
    except RungError:  # refused: nothing was done
        _give_back(durable.lease)
        raise


def _give_back(claim: RunLease) -> None:
    """Release a run that cannot be resumed here, so that a corrected call can claim it at once."""
    if claim.done is None:
        with suppress(RungError):
            claim.give_back()
